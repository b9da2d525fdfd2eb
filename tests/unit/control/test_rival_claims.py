"""A rival that claims in every second, whatever the holder's renewal and the database's clock do.

The model test goes far and finds orders of events; this one goes through all times of a short history.
"""

from __future__ import annotations

import shutil
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from tests.unit.control.control_world import World

_TIMES = (1, 9, 12, 14, 17)
_END = 36


@pytest.mark.parametrize("set_back_at", [None, 2, 13], ids=lambda at: f"set back at {at}")
def test_the_rival_never_holds_a_lease_at_the_same_time(
    tmp_path: Path, empty_store: Path, set_back_at: int | None
) -> None:
    """A renewal is sent, executed and answered at any three times, each as late as the next."""
    shutil.copy(empty_store / "control.sqlite", tmp_path)
    world = World.open(tmp_path / "control.sqlite")
    for number, times in enumerate(combinations_with_replacement(_TIMES, 3)):
        name = f"d{number}"
        world.deploy(name)
        _history(world, name, times, set_back_at)
    world.store.close()


def _history(world: World, name: str, times: tuple[int, ...], set_back_at: int | None) -> None:
    sent_at, executed_at, answered_at = times
    # The holder's clock is slow and the rival's is fast: the worst of both.
    world.workers = []
    holder, rival = world.add_worker(0.0, rate=0.98), world.add_worker(0.0, rate=1.02)
    holder.claim_blindly(name)
    sent, tokens = 0.0, {}
    for second in range(_END):
        rival.watch_only(name)
        if second == set_back_at:
            world.database.seconds -= 3600
        if second == sent_at:
            sent = holder.clock()
        if second == executed_at:
            tokens = world.store.leases.renew(holder.id)
        if second == answered_at:
            holder.held.confirm(tokens, sent)
        rival.claim_blindly(name)
        assert len(world.believers(name)) <= 1, (times, second)
        world.pass_time(1.0)
    # The holder has stopped: the lease is the rival's, even if the clock says that it is not over.
    assert name in rival.local, times
