"""What a worker has to do, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.control.actions import Action, Claim, Clean, Reason, Release, Restart, Start, Stop
from penstock.control.reconcile import Local, has_others, reconcile
from penstock.control.store import View, Wanted
from penstock.control.store.rows import FREE, Desired, RunRow, WorkerRow

NOW = 1000.0
RUN = Desired.RUNNING


def view(wanted: dict[str, Wanted], runs: dict[str, RunRow], *workers: WorkerRow) -> View:
    every = {name: runs.get(name, RunRow(name, lease_until=NOW)) for name in wanted}
    shown = workers or (WorkerRow("me", seen=NOW),)
    return View(NOW, wanted, every | runs, {worker.id: worker for worker in shown})


def wanted(desired: Desired = RUN, generation: int = 1, round: int = 0) -> dict[str, Wanted]:
    return {"a": Wanted("a", desired, generation, round)}


def run(worker: str = "me", token: int = 5, left: float = 10, **more: Any) -> dict[str, RunRow]:
    given = {"state": "RUNNING", "generation": 1} | more
    return {"a": RunRow("a", worker=worker, token=token, lease_until=NOW + left, **given)}


MINE = {"a": Local(5, 1, 0)}
DRAINING = WorkerRow("me", seen=NOW, draining=True)


@pytest.mark.parametrize(
    ("given", "local", "expected"),
    [
        pytest.param(view(wanted(), run()), MINE, [], id="it runs as it should"),
        pytest.param(view(wanted(), {}), {}, [Claim("a")], id="new"),
        pytest.param(view(wanted(), run("other")), {}, [], id="another worker has it"),
        pytest.param(view(wanted(), run("other", left=0)), {}, [Claim("a")], id="lapsed"),
        pytest.param(view(wanted(), run("other", left=-1, lapses=1)), {}, [], id="lapsed twice"),
        pytest.param(
            view(wanted(), run("other", left=-5, lapses=1)),
            {},
            [Claim("a")],
            id="lapsed twice, waited",
        ),
        pytest.param(view(wanted(), run(FREE, lapses=9)), {}, [Claim("a")], id="released"),
        pytest.param(
            view(wanted(), run("other")), MINE, [Stop("a", 5, Reason.LOST)], id="taken over"
        ),
        pytest.param(
            view(wanted(), run(token=6)), MINE, [Stop("a", 5, Reason.LOST)], id="old token"
        ),
        pytest.param(view({}, {}), MINE, [Stop("a", 5, Reason.LOST)], id="gone"),
        pytest.param(
            view(wanted(Desired.PAUSED), run()), MINE, [Stop("a", 5, Reason.PAUSED)], id="pause"
        ),
        pytest.param(
            view(wanted(Desired.STOPPED), run()), MINE, [Stop("a", 5, Reason.STOPPED)], id="stop"
        ),
        pytest.param(
            view(wanted(Desired.DELETED), run()), MINE, [Stop("a", 5, Reason.DELETED)], id="delete"
        ),
        pytest.param(view(wanted(Desired.DELETED), {}), {}, [Claim("a")], id="claim to clean up"),
        pytest.param(view(wanted(Desired.DELETED), run()), {}, [Clean("a", 5)], id="clean up"),
        pytest.param(view(wanted(Desired.PAUSED), {}), {}, [], id="paused and free"),
        pytest.param(
            view(wanted(generation=2), run()), MINE, [Restart("a", 5, 2, 0)], id="new spec"
        ),
        pytest.param(view(wanted(round=1), run()), MINE, [Restart("a", 5, 1, 1)], id="restart"),
        pytest.param(
            view(wanted(), run()), {}, [Start("a", 5, 1, 0)], id="the claim's reply was lost"
        ),
        pytest.param(
            view(wanted(Desired.STOPPED), run()),
            {},
            [Release("a", 5, Reason.STOPPED)],
            id="held, unwanted",
        ),
        pytest.param(view(wanted(), run(left=-1)), {}, [Claim("a")], id="my own lease ran out"),
        pytest.param(view(wanted(), run(FREE, state="FAILED")), {}, [], id="failed stays failed"),
        pytest.param(
            view(wanted(generation=2), run(FREE, state="FAILED")),
            {},
            [Claim("a")],
            id="failed, new spec",
        ),
        pytest.param(
            view(wanted(round=1), run(FREE, state="FAILED")), {}, [Claim("a")], id="failed, restart"
        ),
        pytest.param(
            view(wanted(), run(), DRAINING), MINE, [Stop("a", 5, Reason.DRAINING)], id="drain"
        ),
        pytest.param(
            view(wanted(), run(), DRAINING),
            {},
            [Release("a", 5, Reason.DRAINING)],
            id="drain, held",
        ),
        pytest.param(view(wanted(), {}, DRAINING), {}, [], id="draining claims nothing"),
        pytest.param(
            view(wanted(), {}, WorkerRow("other", seen=NOW)),
            {},
            [],
            id="unknown worker claims nothing",
        ),
    ],
)
def test_what_to_do(given: View, local: dict[str, Local], expected: list[Action]) -> None:
    assert reconcile(given, "me", local) == expected


def test_a_stalled_lease_is_claimed_whatever_the_clock_says() -> None:
    given = view(wanted(), run("other", left=3600))
    assert reconcile(given, "me", {}) == []
    assert reconcile(given, "me", {}, {"a"}) == [Claim("a")]


def many(count: int) -> dict[str, Wanted]:
    return {f"d{n}": Wanted(f"d{n}", RUN) for n in range(count)}


def held(by: dict[str, int]) -> dict[str, RunRow]:
    names = iter(f"d{n}" for n in range(1000))
    return {
        (name := next(names)): RunRow(
            name, "RUNNING", 1, 0, worker, 1, NOW + 10, claimed=float(number)
        )
        for worker, count in by.items()
        for number in range(count)
    }


def locals_of(runs: dict[str, RunRow], me: str) -> dict[str, Local]:
    return {name: Local(1, 1, 0) for name, run in runs.items() if run.worker == me}


THREE = tuple(WorkerRow(id, seen=NOW) for id in ("me", "x", "y"))


def claims(actions: list[Action]) -> list[str]:
    return [action.name for action in actions if isinstance(action, Claim)]


def test_three_workers_share_and_seldom_want_the_same() -> None:
    given = view(many(30), {}, *THREE)
    wants = {worker.id: claims(reconcile(given, worker.id, {})) for worker in THREE}
    assert all(len(each) == 10 for each in wants.values())
    assert len(set().union(*wants.values())) >= 24


def test_a_large_worker_takes_more_and_a_busy_one_less() -> None:
    sizes = (WorkerRow("me", capacity=3, seen=NOW), WorkerRow("x", seen=NOW))
    assert len(claims(reconcile(view(many(12), {}, *sizes), "me", {}))) == 9
    assert len(claims(reconcile(view(many(12), {}, *sizes), "x", {}))) == 3
    busy = (WorkerRow("me", load=0.9, seen=NOW), WorkerRow("x", seen=NOW))
    assert len(claims(reconcile(view(many(11), {}, *busy), "me", {}))) == 1


def test_a_silent_or_draining_worker_has_no_share() -> None:
    others = (WorkerRow("x", seen=NOW - 60), WorkerRow("y", seen=NOW, draining=True))
    given = view(many(10), {}, WorkerRow("me", seen=NOW), *others)
    assert len(claims(reconcile(given, "me", {}))) == 10


def test_claims_are_limited_at_a_time() -> None:
    assert len(claims(reconcile(view(many(200), {}), "me", {}))) == 16


def test_what_no_one_claims_for_long_is_claimed_beyond_the_share() -> None:
    runs = held({"me": 5, "x": 0})
    workers = (WorkerRow("me", seen=NOW), WorkerRow("x", seen=NOW))
    for waited, expected in ((1.0, 0), (11.0, 5)):
        free = {f"d{n}": RunRow(f"d{n}", lease_until=NOW - waited) for n in range(5, 10)}
        given = view(many(10), runs | free, *workers)
        assert len(claims(reconcile(given, "me", locals_of(runs, "me")))) == expected


@pytest.mark.parametrize(
    ("counts", "moved"),
    [
        ({"me": 9, "x": 0, "y": 0}, 2),
        ({"me": 30, "x": 30, "y": 0}, 2),
        ({"me": 11, "x": 10, "y": 9}, 0),
        ({"me": 12, "x": 10, "y": 8}, 0),
        ({"me": 2, "x": 0, "y": 0}, 0),
        ({"me": 3, "x": 0, "y": 0}, 2),
        ({"me": 0, "x": 9, "y": 0}, 0),
    ],
)
def test_runs_move_only_when_the_difference_is_large(counts: dict[str, int], moved: int) -> None:
    runs = held(counts)
    given = view(many(len(runs)), runs, *THREE)
    stops = [a for a in reconcile(given, "me", locals_of(runs, "me")) if isinstance(a, Stop)]
    assert len(stops) == moved
    assert all(stop.reason is Reason.BALANCE for stop in stops)


def test_the_youngest_runs_move_and_none_while_others_wait() -> None:
    runs = held({"me": 9})
    mine = locals_of(runs, "me")
    given = view(many(9), runs, *THREE)
    assert reconcile(given, "me", mine) == [Stop(f"d{n}", 1, Reason.BALANCE) for n in (8, 7)]
    waiting = view(many(10), runs, *THREE)
    assert [a for a in reconcile(waiting, "me", mine) if isinstance(a, Stop)] == []


def test_while_one_starts_only_runs_that_wait_for_their_start_are_moved() -> None:
    runs = held({"me": 9})
    runs["d0"] = replace(runs["d0"], state="STARTING", claimed=NOW - 5)
    mine, given = locals_of(runs, "me"), view(many(9), runs, *THREE)
    assert reconcile(given, "me", mine) == []
    begun = {name: 300.0 for name in mine if name != "d3"}
    assert reconcile(given, "me", mine, begun=begun) == [Stop("d3", 1, Reason.BALANCE)]
    runs["d0"] = replace(runs["d0"], claimed=NOW - 100)
    given = view(many(9), runs, *THREE)
    assert len(reconcile(given, "me", mine)) == 2
    assert reconcile(given, "me", mine, begun=dict.fromkeys(mine, 300.0) | {"d0": 5.0}) == []


def test_the_shares_of_others_cover_what_a_worker_without_java_gives_up() -> None:
    runs = held({"x": 2, "y": 2})
    workers = (WorkerRow("me", capacity=0.0, seen=NOW), *THREE[1:])
    given = view(many(6), runs, *workers)
    wants = {id: claims(reconcile(given, id, locals_of(runs, id))) for id in ("x", "y")}
    assert [len(each) for each in wants.values()] == [1, 1]
    idle = view(many(4), runs, *workers)
    assert reconcile(idle, "x", locals_of(runs, "x")) == []


@pytest.mark.parametrize(
    ("other", "can"),
    [
        (WorkerRow("x", seen=NOW), True),
        (WorkerRow("x", seen=NOW - 60), False),
        (WorkerRow("x", seen=NOW, draining=True), False),
        (WorkerRow("x", seen=NOW, capacity=0.0), False),
    ],
)
def test_which_worker_can_run_what_another_gives_up(other: WorkerRow, can: bool) -> None:
    assert has_others(view({}, {}, WorkerRow("me", seen=NOW), other), "me") is can
    assert not has_others(view({}, {}, WorkerRow("me", seen=NOW)), "me")
