"""Whether the state of a pipeline can move to another machine with it."""

from __future__ import annotations

from pathlib import PurePosixPath

from penstock.errors import ConfigError
from penstock.pipeline.storage import is_uri, on_this_disk

_OF_ONE_MACHINE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/proc")  # noqa: S108 - refused, not used


def require_movable_state(
    name: str, state: str | None, *, several_machines: bool, shared_state: str | None
) -> None:
    """Refuse a pipeline whose checkpoints would stay behind when another machine takes it over.

    `shared_state` is the default of all workers. An absolute folder may be a shared one, mounted on all
    machines; one that is temporary, relative or in a home folder is not.

    >>> require_movable_state("orders", "s3a://state/orders", several_machines=True, shared_state=None)
    >>> require_movable_state("orders", None, several_machines=False, shared_state=None)
    >>> require_movable_state("orders", None, several_machines=True, shared_state="/mnt/penstock")
    """
    if not several_machines or (state is None and shared_state):
        return
    if (reason := _reason(state)) is not None:
        raise ConfigError(
            f"{name!r} cannot move to another worker: {reason}; give `state` as a URI (s3a://...) or as "
            "a folder that all machines share, or start server and workers with a shared state folder"
        )


def _reason(state: str | None) -> str | None:
    if state is None:
        return "its state would be in the data folder of one machine, which is the default"
    path = on_this_disk(state)
    if is_uri(path):
        return None
    if not path.startswith("/"):
        return f"its state {state!r} is relative to the folder that a worker was started in"
    folder = PurePosixPath(path)
    if ".." in folder.parts or any(folder.is_relative_to(each) for each in _OF_ONE_MACHINE):
        return f"its state {state!r} is a folder of one machine"
    return None
