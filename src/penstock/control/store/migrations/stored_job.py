"""One job of a store as releases before the control plane wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from penstock.control.liveness import lives
from penstock.engine import State

_AS_JSON = ("definition", "options")
_ENDED = (State.STOPPED.value, State.FAILED.value)


@dataclass(frozen=True)
class StoredJob:
    """One stored job. Reading it loads no code."""

    name: str
    id: str
    user: str
    created: float
    definition: dict[str, Any] = field(repr=False)  # it may contain secrets
    options: dict[str, Any]
    cancelled: bool = False
    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    epoch: int = -1
    batch: int = -1
    last_error: str | None = None
    last_failed: float | None = None
    last_batch: float | None = None
    rate: float = 0.0
    state: str = State.STARTING.value
    lag: int = 0
    seen: float = 0.0
    host: str = ""
    pid: int = 0
    # The process that runs it, by the name of `liveness.this_process`.
    owner: str = ""

    @classmethod
    def of(cls, row: Any) -> StoredJob:
        """Read a row of the table."""
        return cls(**dict(row) | {name: json.loads(row[name]) for name in _AS_JSON})

    @property
    def is_alive(self) -> bool:
        """Return whether the process that runs it is alive, as far as this machine can tell."""
        is_claimed = bool(self.owner) and self.state not in _ENDED
        return is_claimed and lives(self.owner, self.seen)
