"""What a worker has to do next, as values: `reconcile` decides, the worker acts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """Why a run is stopped."""

    PAUSED = "paused"
    STOPPED = "stopped"
    DELETED = "deleted"
    DRAINING = "draining"
    BALANCE = "balance"
    # Java of this worker died: others have a session in which it runs at once.
    JAVA_DIED = "java_died"
    # Another worker has the lease, or the deployment is gone: stop at once, there is nothing to release.
    LOST = "lost"


@dataclass(frozen=True)
class Claim:
    """Claim the lease of a deployment; then start it, or remove its state if it is to be deleted."""

    name: str


@dataclass(frozen=True)
class Start:
    """Start a deployment whose lease this worker has already."""

    name: str
    token: int
    generation: int
    round: int


@dataclass(frozen=True)
class Restart:
    """Stop a run after its batch and start it with another generation; the lease remains."""

    name: str
    token: int
    generation: int
    round: int


@dataclass(frozen=True)
class Stop:
    """Stop a run after its batch and release its lease; if it was lost, stop at once."""

    name: str
    token: int
    reason: Reason


@dataclass(frozen=True)
class Release:
    """Release a lease under which nothing runs."""

    name: str
    token: int
    reason: Reason


@dataclass(frozen=True)
class Clean:
    """Remove the state of a deleted deployment, then its rows; this worker has the lease."""

    name: str
    token: int


Action = Claim | Start | Restart | Stop | Release | Clean
