"""Removal of the checkpoints of a deployment that is deleted."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config import resolve_references
from penstock.control.job_spec import pipeline_name
from penstock.engine.state_dir import is_state, locked, state_place
from penstock.pipeline.storage import is_uri


def remove_state(definition: Mapping[str, Any]) -> None:
    """Remove the checkpoints of a definition's pipeline, if the folder was created by a pipeline.

    The definition may be a row that others wrote: no other folder is removed, and no code is loaded.
    """
    given = resolve_references(definition.get("state") or "")
    state = state_place(str(definition["name"]), str(given))
    folder = Path(state)
    if is_uri(state) or pipeline_name(folder.name) != folder.name or not is_state(folder):
        return
    with locked(state, folder.name):
        shutil.rmtree(folder, ignore_errors=True)
