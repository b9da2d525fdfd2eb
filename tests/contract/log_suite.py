"""What the store promises of logs, for SQLite and PostgreSQL alike."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from tests.contract.control_suite import deploy

from penstock.control.store import ControlStore
from penstock.control.store.logs import LogFilter, LogLine, Logs
from penstock.control.store.rows import Desired
from penstock.control.store.tables import LOGS, WORKERS


def line(event: str, deployment: str = "orders", level: str = "info", age: float = 0.0) -> LogLine:
    return LogLine(deployment, level, event, {"n": 1}, age)


def events(logs: Logs, **wanted: object) -> list[str]:
    return [row.event for row in logs.after(0, LogFilter(**wanted))]  # type: ignore[arg-type]


class LogsSuite:
    def test_lines_are_read_in_their_order_by_deployment_and_by_worker(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        store.logs.add("w1", [line("a"), line("own", ""), line("b")])
        store.logs.add("w2", [line("c"), line("other", "")])

        rows = store.logs.after(0, LogFilter(deployment="orders"))
        assert [(row.event, row.worker, row.fields) for row in rows] == [
            ("a", "w1", {"n": 1}), ("b", "w1", {"n": 1}), ("c", "w2", {"n": 1}),
        ]  # fmt: skip
        assert events(store.logs, worker="w1") == ["own"]
        assert [row.number for row in store.logs.after(0)] == [1, 2, 3, 4, 5]
        assert store.logs.last() == 5
        after = store.logs.after(rows[0].number, LogFilter(deployment="orders"), most=1)
        assert [row.event for row in after] == ["b"]
        newest = store.logs.newest(LogFilter(deployment="orders"), 2)
        assert [row.event for row in newest] == ["b", "c"]

    @pytest.mark.parametrize(
        ("level", "expected"),
        [
            ("debug", ["debug", "info", "warning", "error", "critical"]),
            ("warning", ["warning", "error", "critical"]),
            ("critical", ["critical"]),
        ],
    )
    def test_a_level_is_the_lowest_one(
        self, store: ControlStore, level: str, expected: list[str]
    ) -> None:
        deploy(store)
        levels = ("debug", "info", "warning", "error", "critical")
        store.logs.add("w", [line(each, level=each) for each in levels])

        assert events(store.logs, deployment="orders", level=level) == expected
        wanted = LogFilter(deployment="orders", level=level)
        assert [row.event for row in store.logs.after(0) if wanted.accepts(row)] == expected

    def test_times_are_those_of_the_database_and_of_the_moment_of_logging(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        now = store.database.time()
        store.logs.add("w", [line("old", age=1000.0), line("new")])
        old, new = store.logs.after(0)

        assert now <= new.at <= store.database.time()
        assert new.at - old.at == pytest.approx(1000, abs=1)
        assert events(store.logs, deployment="orders", since=now - 10) == ["new"]

    def test_lines_of_an_unknown_deployment_are_the_workers_own(self, store: ControlStore) -> None:
        store.logs.add("w", [line("a", "nope")])

        assert (events(store.logs, deployment="nope"), events(store.logs, worker="w")) == (
            [],
            ["a"],
        )
        assert store.logs.has_worker("w")
        assert not store.logs.has_worker("v")

    def test_the_newest_lines_of_each_owner_remain(self, store: ControlStore) -> None:
        deploy(store)
        deploy(store, "quiet")
        logs = Logs(store.database, most=300)
        logs.add("w", [line("first", "quiet"), line("own", "")])
        for start in range(0, 2000, 100):
            logs.add("w", [line(str(n)) for n in range(start, start + 100)])
        kept = events(logs, deployment="orders")

        assert kept[-300:] == [str(n) for n in range(1700, 2000)]
        assert len(kept) <= 500
        assert events(logs, deployment="quiet") == ["first"]
        assert events(logs, worker="w") == ["own"]

    def test_workers_that_add_few_lines_each_do_not_exceed_the_bound(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        for n in range(8):  # each is a process that ended soon
            Logs(store.database, most=100).add(f"w{n}", [line("x") for _ in range(50)])

        assert len(events(store.logs, deployment="orders")) <= 150

    def test_lines_go_with_their_deployment_and_those_of_old_workers_later(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        claimed = store.leases.claim("orders", "w")
        assert claimed
        store.workers.join("here", "host", 1)
        store.logs.add("w", [line("a"), line("old", "", age=8 * 86_400), line("young", "")])
        store.logs.add("here", [line("old", "", age=8 * 86_400)])
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        assert store.deployments.remove("orders", "w", claimed.token)
        assert events(store.logs, deployment="orders") == []

        with store.database.write() as session:  # a line that came between two statements
            session.execute(
                LOGS.insert().values(
                    number=99, deployment="orders", worker="w", level="info", event="x", fields="{}"
                )
            )
        store.logs.remove_orphans()
        assert [(row.worker, row.event) for row in store.logs.after(0)] == [
            ("w", "young"), ("here", "old"),
        ]  # fmt: skip

    def test_several_writers_have_numbers_in_the_order_of_their_commits(
        self, store: ControlStore
    ) -> None:
        deploy(store)

        def write(n: int) -> None:
            for m in range(10):
                store.logs.add(f"w{n}", [line(f"{m}.{k}") for k in range(3)])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        rows = store.logs.after(0)

        assert [row.number for row in rows] == list(range(1, 121))
        for n in range(4):
            mine = [row.event for row in rows if row.worker == f"w{n}"]
            assert mine == [f"{m}.{k}" for m in range(10) for k in range(3)]

    def test_no_lines_are_no_statement(self, store: ControlStore) -> None:
        store.logs.add("w", [])

        with store.database.read() as session:
            assert session.execute(sa.select(sa.func.count()).select_from(WORKERS)).scalar() == 0
        assert store.logs.last() == 0
