"""A worker knows by itself, and in time, that a lease may not be its own any more."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from penstock.control.store.leases import Stalled
from penstock.control.store.rows import RunRow
from penstock.control.worker_lease import HeldLeases, Lease, LeaseWatch
from penstock.errors import FencedError, TransientError


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_lease_ends_before_the_database_ends_it(time: Time) -> None:
    lease = Lease("a", 7, 10.0, sent=100.0, clock=time)
    assert lease.left() == 9.0
    time.now = 108.9
    assert lease.is_held()
    lease.require()
    time.now = 109.0
    assert not lease.is_held()
    assert lease.left() == 0
    with pytest.raises(TransientError, match=r"lease of 'a' was not renewed in time"):
        lease.require()


def test_a_reply_that_comes_late_counts_from_when_the_renewal_was_sent(time: Time) -> None:
    held = HeldLeases(time)
    lease = held.add("a", 7, 10.0, sent=100.0)
    time.now = 118.0
    held.confirm({"a": 7}, sent=105.0)
    assert not lease.is_held()
    held.confirm({"a": 7}, sent=110.0)
    assert lease.is_held()
    held.confirm({"a": 7}, sent=101.0)  # an older reply takes nothing away
    assert lease.is_held()


def test_a_process_that_was_suspended_does_not_hold_its_lease_when_it_wakes(time: Time) -> None:
    lease = HeldLeases(time).add("a", 7, 10.0, sent=100.0)
    time.now += 3600
    assert not lease.is_held()


@pytest.mark.parametrize(
    ("change", "is_held"), [(lambda lease: lease.renewed(109.0), True), (Lease.lost, False)]
)
def test_a_batch_waits_until_the_lease_is_renewed_or_lost(
    time: Time, change: Callable[[Lease], None], is_held: bool
) -> None:
    lease = Lease("a", 7, 10.0, sent=100.0, clock=time)
    time.now = 110.0
    waiting = Thread(target=lease.wait, args=[3600.0])
    waiting.start()
    assert waiting.is_alive()
    change(lease)
    waiting.join(60)
    assert not waiting.is_alive()
    assert lease.is_held() is is_held


def test_a_lease_that_a_renewal_does_not_return_is_lost_for_good(time: Time) -> None:
    held = HeldLeases(time)
    lease = held.add("a", 7, 10.0, sent=100.0)
    time.now = 101.0
    assert held.confirm({"b": 1}, sent=101.0) == [lease]
    assert not lease.is_held()
    lease.renewed(sent=101.0)
    assert not lease.is_held()
    with pytest.raises(FencedError, match="another worker has the lease of 'a'"):
        lease.require()
    assert held.get("a") is None


def test_a_claim_and_a_renewal_that_cross_each_other(time: Time) -> None:
    """The renewal was executed before the claim, and its reply came after the claim's."""
    held = HeldLeases(time)
    claim_sent, renewal_sent = 100.0, 101.0
    time.now = 102.0
    lease = held.add("a", 7, 10.0, sent=claim_sent)
    assert held.confirm({}, sent=renewal_sent) == []
    assert lease.is_held()


def test_a_token_that_is_being_advanced_is_neither_lost_nor_extended(time: Time) -> None:
    held = HeldLeases(time)
    lease = held.add("a", 7, 10.0, sent=100.0)
    time.now = 105.0
    assert held.confirm({"a": 8}, sent=105.0) == []
    lease.advanced(8)
    assert held.confirm({"a": 7}, sent=104.0) == []
    time.now = 109.5
    assert not lease.is_held()


def test_a_watch_finds_what_no_one_renews(time: Time) -> None:
    watch = LeaseWatch(10.0, time)
    still = RunRow("a", worker="w", token=7, renewals=3, lease_length=10.0)
    assert watch.observe([still]) == {}
    for _ in range(2):
        time.now += 5
        assert watch.observe([still]) == {}
    time.now += 0.1
    assert watch.observe([still]) == {"a": Stalled(7, 3)}
    renewed = RunRow("a", worker="w", token=7, renewals=4, lease_length=10.0)
    assert watch.observe([renewed]) == {}
    assert watch.observe([RunRow("a")]) == {}
    time.now += 20
    assert watch.observe([renewed]) == {}


def test_a_lease_that_is_longer_than_those_of_the_watcher_is_not_stalled_before_its_end(
    time: Time,
) -> None:
    """A worker with `--lease 60` renews every 20 s: one with 15 s must not take that for its end."""
    watch = LeaseWatch(10.0, time)
    long = RunRow("a", worker="w", token=7, renewals=3, lease_length=60.0)
    for _ in range(13):
        assert watch.observe([long]) == {}
        time.now += 5
    assert watch.observe([long]) == {"a": Stalled(7, 3)}


def test_after_an_outage_of_the_store_holders_have_time_to_renew(time: Time) -> None:
    watch = LeaseWatch(10.0, time)
    held = RunRow("a", worker="w", token=7, renewals=3, lease_length=10.0)
    assert watch.is_settled()
    assert watch.observe([held]) == {}
    assert watch.is_settled()
    for _ in range(6):
        time.now += 10  # no worker can renew
        watch.store_away()
    assert watch.observe([held]) == {}
    assert not watch.is_settled()
    time.now += 5
    assert watch.observe([held]) == {}
    assert watch.is_settled()
    time.now += 5.1
    assert watch.observe([held]) == {"a": Stalled(7, 3)}


def test_a_watcher_that_was_slow_itself_waits_for_no_one(time: Time) -> None:
    """A step may take long, or its process be suspended: the others renewed meanwhile."""
    watch = LeaseWatch(10.0, time)
    held = RunRow("a", worker="w", token=7, renewals=3, lease_length=10.0)
    assert watch.observe([held]) == {}
    time.now += 60
    assert watch.observe([held]) == {"a": Stalled(7, 3)}
    watch.store_away()  # for a moment
    time.now += 5
    assert watch.observe([held]) == {"a": Stalled(7, 3)}
    assert watch.is_settled()
