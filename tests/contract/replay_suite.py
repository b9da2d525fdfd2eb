"""What the store promises of requested replays, for SQLite and PostgreSQL alike."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from tests.contract.control_suite import deploy

from penstock.control.store import ControlStore
from penstock.control.store import replays as replays_module
from penstock.control.store.replays import MOST_ATTEMPTS, MOST_OPEN
from penstock.control.store.rows import Desired, ReplayRow, ReplayState
from penstock.control.store.tables import REPLAYS, WORKERS
from penstock.errors import ConfigError

ALL = {"all": True}


def ask(store: ControlStore, name: str = "orders", value: str | None = None) -> int:
    return store.replays.add(name, ALL, value, by="ann")


def taken(store: ControlStore, worker: str, **more: bool) -> ReplayRow:
    row = store.replays.take(worker, **more)
    assert row
    return row


def silence(store: ControlStore, worker: str, seconds: float) -> None:
    """Set the last heartbeat of a worker to this many seconds ago."""
    with store.database.write() as session:
        mine = WORKERS.update().where(WORKERS.c.id == worker)
        session.execute(mine.values(seen=store.database.now - seconds))


class ReplaysSuite:
    @pytest.fixture(autouse=True)
    def workers(self, store: ControlStore) -> None:
        deploy(store)
        for id in ("v", "w"):
            store.workers.join(id, "host", 1)

    def test_a_request_is_taken_and_ends_with_its_outcome(self, store: ControlStore) -> None:
        wanted = {"ids": ["orders-0-7"], "stage": "decode"}
        number = store.replays.add("orders", wanted, "sealed", by="ann")
        asked = store.replays.get("orders", number)
        assert asked
        assert (asked.state, asked.wanted, asked.value) == (ReplayState.PENDING, wanted, "sealed")
        assert (asked.by, asked.worker, asked.attempts, asked.started) == ("ann", "", 0, None)

        row = taken(store, "w")
        assert (row.state, row.worker, row.attempts) == (ReplayState.RUNNING, "w", 1)
        assert (row.wanted, row.value) == (wanted, "sealed")
        assert store.replays.finish(row, {"letters": 1})

        done = store.replays.get("orders", number)
        assert done
        assert (done.state, done.outcome, done.error) == (ReplayState.DONE, {"letters": 1}, None)
        assert done.value is None, "it may be personal data"
        assert done.at <= (done.started or 0) <= (done.ended or 0) <= store.database.time()
        assert store.replays.take("w") is None

    def test_the_reason_of_a_failure_is_stored(self, store: ControlStore) -> None:
        number = ask(store, value="sealed")
        assert store.replays.fail(taken(store, "w"), "no password=hunter2\x00")

        row = store.replays.get("orders", number)
        assert row
        assert (row.state, row.value, row.outcome) == (ReplayState.FAILED, None, None)
        assert row.error == "no password=********"

    def test_one_of_many_workers_takes_it(self, store: ControlStore) -> None:
        ask(store)
        for n in range(8):
            store.workers.join(f"w{n}", "host", 1)
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda n: store.replays.take(f"w{n}"), range(8)))

        assert len([row for row in rows if row]) == 1

    def test_replays_of_a_deployment_run_in_their_order_and_others_beside(
        self, store: ControlStore
    ) -> None:
        deploy(store, "other")
        numbers = [ask(store), ask(store), ask(store, "other")]

        first, other = taken(store, "v"), taken(store, "w")
        assert [first.number, other.number] == [numbers[0], numbers[2]]
        assert store.replays.finish(other, {})
        assert store.replays.take("w") is None
        assert store.replays.finish(first, {})
        assert taken(store, "w").number == numbers[1]

    def test_the_worker_that_runs_the_deployment_has_its_replays(self, store: ControlStore) -> None:
        lease = store.leases.claim("orders", "w")
        assert lease
        ask(store)

        assert store.replays.take("v") is None
        row = taken(store, "w", only_own=True)
        assert store.replays.give_back(row, "Java died")
        store.leases.release("orders", "w", lease.token, "PAUSED")

        assert store.replays.take("w", only_own=True) is None, "it runs nothing of it any more"
        again = taken(store, "v")
        assert (again.worker, again.attempts, again.error) == ("v", 2, None)

    def test_one_whose_worker_has_gone_is_taken_again(self, store: ControlStore) -> None:
        ask(store)
        first = taken(store, "w")
        assert store.replays.take("v") is None
        silence(store, "w", 10)
        assert store.replays.take("v") is None

        silence(store, "w", 20)
        assert store.replays.take("v", from_silent=False) is None
        again = taken(store, "v")
        assert (again.number, again.worker, again.attempts) == (first.number, "v", 2)
        assert again.started == first.started
        for end in (store.replays.give_back(first), store.replays.finish(first, {})):
            assert not end, "it is the other worker's"
        store.workers.leave("v")
        assert taken(store, "w", from_silent=False).attempts == 3

    def test_one_whose_answer_was_lost_is_taken_again_by_the_same_worker(
        self, store: ControlStore
    ) -> None:
        ask(store)
        first, again = taken(store, "w"), taken(store, "w")

        assert (again.number, again.attempts) == (first.number, 2)
        assert not store.replays.finish(first, {})
        assert store.replays.finish(again, {})

    def test_one_that_ends_its_workers_is_not_taken_for_ever(self, store: ControlStore) -> None:
        number = ask(store, value="sealed")
        for _ in range(MOST_ATTEMPTS):
            assert store.replays.give_back(taken(store, "w"))

        assert store.replays.take("w") is None
        row = store.replays.get("orders", number)
        assert row
        assert (row.state, row.value, row.ended is None) == (ReplayState.FAILED, None, False)
        assert f"{MOST_ATTEMPTS} workers ended while they ran it" in str(row.error)

    def test_their_number_is_bounded(
        self, store: ControlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(replays_module, "MOST_ENDED", 3)
        deploy(store, "other")
        ask(store, "other")
        assert store.leases.claim("other", "v")
        for _ in range(5):
            ask(store)
            assert store.replays.finish(taken(store, "w"), {})
        numbers = [row.number for row in store.replays.before("orders")]
        assert len(numbers) == 3
        assert numbers == sorted(numbers, reverse=True)
        assert len(store.replays.before("other")) == 1

        for _ in range(MOST_OPEN):
            ask(store)
        with pytest.raises(ConfigError, match=f"{MOST_OPEN} replays of 'orders' wait or run"):
            ask(store)
        assert [row.number for row in store.replays.before("orders", numbers[0], 1)] == numbers[1:2]

    def test_they_go_with_their_deployment(self, store: ControlStore) -> None:
        number = ask(store)
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        assert store.replays.take("w") is None
        lease = store.leases.claim("orders", "w")
        assert lease
        assert store.deployments.remove("orders", "w", lease.token)

        assert store.replays.get("orders", number) is None
        with store.database.read() as session:
            assert session.execute(sa.select(sa.func.count()).select_from(REPLAYS)).scalar() == 0
