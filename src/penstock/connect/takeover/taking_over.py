"""The takeover of one connector: nothing is lost, and nothing comes twice that Connect would not repeat.

1. It is created here as STOPPED: a configuration that is refused changes nothing there.
2. It is stopped there, and is waited for: its tasks write their last offsets when they end.
3. Its offsets are read there and set here. Those of a sink cannot be set while its group has members:
   a success says as well that its consumers have left. They are read once more: what was committed
   meanwhile counts. Positions of a source that an earlier connector of the name left here are removed.
4. It gets the state here that it had there. There it stays, STOPPED, with its offsets: the way back.

An error on the way removes it here, and lets it go on there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.connect.takeover.assessment import Assessment
from penstock.connect.takeover.connect_cluster import (
    PAUSED,
    RUNNING,
    STOPPED,
    ConnectCluster,
    Listed,
)
from penstock.errors import PenstockError, TransientError
from penstock.retry import wait_for

_PATIENCE = 120.0
_EVERY = 0.25


class Outcome(str, Enum):
    """What became of a connector."""

    TAKEN = "taken over"
    STOPPED = "taken over, STOPPED as it was there"
    CREATED = "created as STOPPED"


@dataclass(frozen=True)
class TakeOver:
    """Takes connectors over from one cluster into another; `stop_there` allows to stop those that run."""

    there: ConnectCluster
    here: ConnectCluster
    stop_there: bool = False
    note: Callable[[str], None] = lambda _text: None

    def take(self, found: Assessment) -> Outcome:
        """Take one connector over; raise after it goes on there as before."""
        name, state = found.there.name, found.there.state
        if not found.exists:
            self.here.create(name, found.config)
        if state != STOPPED and not self.stop_there:
            return Outcome.CREATED
        try:
            if state != STOPPED:
                self.note(f"{name}: stopping it there")
                self.there.ask_for(name, STOPPED)
            self._await_end(name)
            count = self._copy_offsets(found.there)
            self.note(f"{name}: offsets taken over: {count}")
            if state != STOPPED:
                self.here.ask_for(name, PAUSED if state == PAUSED else RUNNING)
        except BaseException:
            self._undo(found)
            raise
        return Outcome.STOPPED if state == STOPPED else Outcome.TAKEN

    def _await_end(self, name: str) -> None:
        if not wait_for(lambda: self.there.is_stopped(name), within=_PATIENCE, every=_EVERY):
            raise TransientError(f"{name} was not stopped there within {_PATIENCE:g} s")

    def _copy_offsets(self, there: Listed) -> int:
        """Set the offsets here until those there have not changed meanwhile; return their number."""
        name = there.name
        # Those of a sink are of one group, there and here.
        has_old = there.kind == "source" and bool(self.here.offsets(name))
        copied: list[dict[str, Any]] | None = None
        while (offsets := self.there.offsets(name)) and _sorted(offsets) != copied:
            self.here.set_offsets(name, offsets, _again)
            copied = _sorted(offsets)
        if has_old:  # only now: what is refused has changed nothing
            self.here.reset_offsets(name, _again)
            if offsets:
                self.here.set_offsets(name, offsets, _again)
        return len(offsets)

    def _undo(self, found: Assessment) -> None:
        name, state = found.there.name, found.there.state
        try:
            # It may have been started: the request can have failed after it was carried out.
            if found.exists:
                self.here.ask_for(name, STOPPED)
            else:
                self.here.delete(name)
        except PenstockError as error:
            self.note(f"{name}: it is still here, and could not be stopped: {error}; see to that")
        if state == STOPPED:
            return
        try:
            self.there.ask_for(name, PAUSED if state == PAUSED else RUNNING)
        except PenstockError as error:
            self.note(
                f"{name}: it is STOPPED there, and could not be resumed: {error}; send PUT "
                f"/connectors/{name}/resume to {self.there.url}"
            )
        else:
            self.note(f"{name}: it goes on there")


def _again(error: Exception) -> float | None:
    """Return the pause while a group still has members, or a lease has not ended."""
    passes = type(error) is PenstockError or isinstance(error, TransientError)
    return _EVERY if passes or "must be in the STOPPED state" in str(error) else None


def _sorted(offsets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(offsets, key=lambda each: json.dumps(each, sort_keys=True))
