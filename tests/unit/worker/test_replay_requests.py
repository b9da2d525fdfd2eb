"""Workers take requested replays: one of them, again after its end, and not while it drains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from tests.unit.jobs.conftest import Idle

from penstock.control.store import ControlStore
from penstock.control.store.logs import LogFilter
from penstock.control.store.rows import Desired, Kind, ReplayRow
from penstock.control.store.tables import WORKERS
from penstock.engine.dead_letters.replay_lock import ReplayingError
from penstock.engine.dead_letters.replays import Replayed
from penstock.engine.restart_reason import JavaDiedError
from penstock.errors import ConfigError, TransientError
from penstock.testing import eventually
from penstock.worker import replay_requests
from penstock.worker.replay_requests import ReplayRequests
from penstock.worker.worker import Worker, WorkerSettings

QUICK = WorkerSettings(reconcile_every=0.02, report_every=0.02, grace=60.0)


class Replaying:
    """Starts runs that do nothing, and replays that end when a test lets them."""

    def __init__(self) -> None:
        self.begun, self.may_end = Event(), Event()
        self.may_end.set()
        self.given: list[tuple[int, bool]] = []
        self.errors: list[BaseException] = []

    def start(self, *_: Any) -> Idle:
        return Idle()

    def replay(self, request: ReplayRow, repeated: bool) -> Replayed:
        self.given.append((request.number, repeated))
        self.begun.set()
        self.may_end.wait(60)
        if self.errors:
            raise self.errors.pop(0)
        return Replayed(letters=2, rows=1, failed_again=1)


Start = Callable[..., tuple[Worker, Replaying, Thread]]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_requests, "_TRY_EVERY", 0.01)


@pytest.fixture
def store(control_store: ControlStore) -> ControlStore:
    control_store.deployments.put(
        "orders", Kind.PIPELINE, "name: orders", by="ann", desired=Desired.PAUSED
    )
    return control_store


@pytest.fixture
def start(store: ControlStore) -> Iterator[Start]:
    """Starts workers in threads; they are drained at the end."""
    started: list[tuple[Worker, Replaying, Thread]] = []

    def start(settings: WorkerSettings = QUICK) -> tuple[Worker, Replaying, Thread]:
        starting: Any = Replaying()
        worker = Worker(store, starting, settings)
        thread = Thread(target=worker.run)
        thread.start()
        eventually(lambda: worker.id in {row.id for row in store.workers.all()})
        started.append((worker, starting, thread))
        return started[-1]

    yield start
    for worker, starting, thread in started:
        starting.may_end.set()
        worker.drain()
        thread.join(60)
        assert not thread.is_alive()


def ask(store: ControlStore) -> int:
    return store.replays.add("orders", {"all": True}, by="ann")


def find(store: ControlStore, number: int) -> ReplayRow:
    row = store.replays.get("orders", number)
    assert row
    return row


def ended(store: ControlStore, number: int) -> ReplayRow:
    return eventually(lambda: (row := find(store, number)).ended and row)


def test_a_worker_replays_what_is_asked_for_one_after_the_other(
    store: ControlStore, start: Start
) -> None:
    worker, starting, _ = start()
    with worker.lines.collecting():
        numbers = [ask(store), ask(store)]
        rows = [ended(store, number) for number in numbers]
    assert [(row.state.value, row.worker, row.error) for row in rows] == [
        ("done", worker.id, None)
    ] * 2
    assert rows[0].outcome == {
        "letters": 2, "rows": 1, "failed_again": 1, "taken": 0, "finished": 0, "elsewhere": [],
    }  # fmt: skip
    assert starting.given == [(numbers[0], False), (numbers[1], False)]
    wanted = LogFilter(deployment="orders")
    eventually(
        lambda: (
            [line.event for line in store.logs.after(0, wanted)]
            == ["replay_begins", "replay_done"] * 2
        )
    )


def test_one_of_two_workers_takes_it_and_goes_on_with_its_other_work(
    store: ControlStore, start: Start
) -> None:
    both = [start(), start()]
    for _, starting, _ in both:
        starting.may_end.clear()
    number = ask(store)
    (mine,) = eventually(lambda: [each for each in both if each[1].begun.is_set()])
    worker, starting, _ = mine

    # Meanwhile it runs what is deployed, and renews.
    store.deployments.set_desired("orders", Desired.RUNNING, by="ann")
    for each, _, _ in both:
        seen = {row.id: row.seen for row in store.workers.all()}
        each.renew()
        assert {row.id: row.seen for row in store.workers.all()}[each.id] > seen[each.id]
    eventually(lambda: any(each.runs for each, _, _ in both))
    assert find(store, number).worker == worker.id
    assert [len(starting.given) for _, starting, _ in both].count(0) == 1

    starting.may_end.set()
    assert ended(store, number).state.value == "done"


def test_one_of_a_worker_that_died_is_finished_by_another(
    store: ControlStore, start: Start
) -> None:
    store.workers.join("dead", "host", 1)
    number = ask(store)
    assert store.replays.take("dead")
    worker, starting, _ = start()
    store.workers.leave("dead")

    row = ended(store, number)
    assert (row.state.value, row.worker, row.attempts) == ("done", worker.id, 2)
    assert starting.given == [(number, True)]


def test_after_an_outage_of_the_store_its_worker_has_time_for_a_heartbeat(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(replay_requests, "clock", lambda: now[0])
    store.workers.join("other", "host", 1)
    number = ask(store)
    assert store.replays.take("other")
    replays = Replaying()
    requests = ReplayRequests(store, "me", replays.replay)

    def looks(seconds: int) -> None:
        for _ in range(seconds):
            now[0] += 1.0
            requests.step()

    now[0] += 60.0  # the store was away for all workers
    with store.database.write() as session:
        session.execute(WORKERS.update().values(seen=store.database.now - 60))
    looks(15)
    assert replays.given == []
    looks(1)
    assert replays.given == [(number, True)]


def test_a_drained_worker_ends_its_replay_and_takes_no_other(
    store: ControlStore, start: Start
) -> None:
    worker, starting, thread = start()
    starting.may_end.clear()
    first, second = ask(store), ask(store)
    assert starting.begun.wait(60)
    worker.drain()
    eventually(lambda: store.workers.all()[0].draining)
    assert thread.is_alive()

    starting.may_end.set()
    thread.join(60)
    assert find(store, first).state.value == "done"
    assert find(store, second).state.value == "pending"
    other, _, _ = start()
    assert ended(store, second).worker == other.id


def test_a_worker_whose_grace_is_over_gives_its_replay_back(
    store: ControlStore, start: Start
) -> None:
    worker, starting, thread = start(WorkerSettings(0.02, 0.02, grace=0.0))
    starting.may_end.clear()
    number = ask(store)
    assert starting.begun.wait(60)
    worker.drain()
    thread.join(60)
    row = find(store, number)
    assert (row.state.value, row.worker) == ("pending", "")

    other, its, _ = start()
    assert ended(store, number).worker == other.id
    assert its.given == [(number, True)]
    starting.may_end.set()  # the first one ends late, and changes nothing
    assert find(store, number).worker == other.id


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError("there is no dead letter 'x'"), "there is no dead letter 'x'"),
        (SystemExit(3), "unexpected SystemExit: 3"),
        (ValueError("a mistake of ours"), "a mistake of ours"),
    ],
)
def test_the_reason_of_a_failure_is_stored_and_the_worker_goes_on(
    store: ControlStore, start: Start, error: BaseException, text: str
) -> None:
    _, starting, _ = start()
    starting.errors = [error]
    failed = ended(store, ask(store))

    assert (failed.state.value, failed.outcome) == ("failed", None)
    assert text in str(failed.error)
    assert ended(store, ask(store)).state.value == "done"


@pytest.mark.parametrize(
    "error", [TransientError("no broker answers"), ReplayingError("another process replays")]
)
def test_what_is_in_the_way_for_a_moment_is_waited_for(
    store: ControlStore, start: Start, error: BaseException
) -> None:
    _, starting, _ = start()
    starting.errors = [error, error]
    number = ask(store)

    row = ended(store, number)
    assert (row.state.value, row.attempts) == ("done", 1)
    assert starting.given == [(number, False), (number, True), (number, True)]


def test_one_that_java_died_under_is_taken_again(store: ControlStore, start: Start) -> None:
    _, starting, _ = start()
    starting.errors = [JavaDiedError("killed by signal 9")]
    number = ask(store)

    row = ended(store, number)
    assert (row.state.value, row.attempts, row.error) == ("done", 2, None)
    assert starting.given == [(number, False), (number, True)]


def test_a_process_with_deployments_of_its_own_takes_only_theirs(store: ControlStore) -> None:
    starting: Any = Replaying()
    worker = Worker(store, starting, QUICK, chosen=lambda wanted: wanted.name == "mine")
    store.workers.join(worker.id, "host", 1)
    store.deployments.put("mine", Kind.JOB, "{}", by="ann", desired=Desired.STOPPED)
    number = ask(store)
    own = store.replays.add("mine", {"all": True}, by="ann")
    worker._replays.step()
    assert starting.given == []

    assert store.leases.claim("mine", worker.id, stopped=True)
    worker._replays.step()
    assert starting.given == [(own, False)]
    assert find(store, number).state.value == "pending"
