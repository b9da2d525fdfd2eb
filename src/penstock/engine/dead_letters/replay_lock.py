"""One process at a time replays or drops the dead letters of a pipeline with one state folder."""

from __future__ import annotations

from contextlib import ExitStack

from penstock.engine.state_dir import locked, state_folder
from penstock.errors import ConfigError, SetupError
from penstock.pipeline import Pipeline


class ReplayingError(ConfigError):
    """Another process replays or drops dead letters of the pipeline with the same state folder."""


def alone(pipeline: Pipeline) -> ExitStack:
    """Refuse a second process; those with other state folders see this one's plans among the letters."""
    state = f"{state_folder(pipeline)}/replays"
    try:
        return locked(state, pipeline.name, pipeline.session_options)
    except SetupError:
        raise
    except ConfigError as error:
        raise ReplayingError(
            f"another process replays or drops dead letters of {pipeline.name!r} with the state under "
            f"{state}: wait until it has ended"
        ) from error
