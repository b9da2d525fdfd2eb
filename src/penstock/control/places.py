"""Where the store of the control plane is: a file of this user, unless another place is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.config.directories import data_dir

if TYPE_CHECKING:
    from penstock.control.store import ControlStore

STORE, KEYS = "PENSTOCK_STORE", "PENSTOCK_STORE_KEYS"
"""The environment variables of the store's file or URL, and of the file with its keys."""
JOBS = "PENSTOCK_JOBS"
"""The variable that named the store of jobs before it was that of the control plane."""
SUPERVISED = "PENSTOCK_SUPERVISED"
"""The variable of workers that a server started; its value is the place of their store."""

WORKER_CONF = "PENSTOCK_WORKER_CONF"
"""The variable with the Spark settings of such a worker, as JSON: options are visible to other users."""


def store_place(given: str | None = None) -> str:
    """Return the file or URL of the store: the given one, the environment's, or the user's own."""
    named = given or os.environ.get(STORE) or os.environ.get(JOBS)
    if named:
        return named
    place, earlier = data_dir() / "control.sqlite", data_dir() / "jobs.sqlite"
    # A file of a release before the control plane is taken over where it is.
    return str(earlier if earlier.exists() and not place.exists() else place)


def open_store(
    place: str | None = None, keys: str | None = None, length: float = 15.0
) -> ControlStore:
    """Open the store at a place; secrets in it are encrypted with the keys of a file.

    All servers and workers of a store have the same keys.
    """
    from penstock.control.store import ControlStore  # noqa: PLC0415 - a worker starts Java first

    file = keys or os.environ.get(KEYS) or str(data_dir() / "control.keys")
    return ControlStore.at(store_place(place), Path(file), length)
