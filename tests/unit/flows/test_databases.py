"""Databases of flows that need no server: values, times, what is away, and statements of one message."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.unit.flows.flow_cases import codes, flow_of, payloads

from penstock.flows import CompiledFlow, Message
from penstock.flows.error_codes import Fault
from penstock.flows.live.database_values import plain_row
from penstock.flows.live.databases import Databases
from penstock.flows.live.live_systems import LiveSystems


def asked(url: str, query: str, timeout: float = 30.0, **parameters: Any) -> list[dict[str, Any]]:
    databases = Databases()
    options = SimpleNamespace(database=url, password=None, most=10, timeout=timeout)
    try:
        return databases.query("step", options, query, parameters)
    finally:
        databases.close()


@pytest.mark.parametrize(
    "url", ["postgresql://u@127.0.0.1:1/d", "mariadb://u@127.0.0.1:1/d", "sqlite:////none/none.db"]
)
def test_a_database_that_cannot_be_reached_is_unavailable(url: str) -> None:
    with pytest.raises(Fault) as away:
        asked(url, "SELECT 1")

    assert away.value.code == "DATABASE:UNAVAILABLE"


def test_a_database_that_is_locked_is_unavailable(tmp_path: Path) -> None:
    file = tmp_path / "d.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE t (a)")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(Fault) as away:
        asked(f"sqlite:///{file}?timeout=0.1", "SELECT a FROM t")
    other.close()

    assert away.value.code == "DATABASE:UNAVAILABLE"


def test_a_query_ends_after_its_timeout_and_the_next_one_has_its_own_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'd.db'}"
    databases = Databases()
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r"
    endless = f"{numbers}) SELECT count(*) AS n FROM r"
    limited = f"{numbers} LIMIT 100000) SELECT count(*) AS n FROM r"
    short, long = (
        SimpleNamespace(database=url, password=None, most=10, timeout=each) for each in (0.05, 600)
    )

    with pytest.raises(Fault) as late:
        databases.query("step", short, endless, {})
    rows = databases.query("step", long, limited, {})
    databases.close()

    assert (late.value.code, rows) == ("CORE:TIMEOUT", [{"n": 100_000}])


def test_a_colon_in_quotes_or_a_comment_is_not_a_parameter(tmp_path: Path) -> None:
    query = "SELECT 'at :b' AS a, :c AS c -- and :d"

    assert asked(f"sqlite:///{tmp_path / 'd.db'}", query, c=1) == [{"a": "at :b", "c": 1}]


def test_a_value_that_the_database_cannot_take_fails_its_message_alone(tmp_path: Path) -> None:
    file, live = tmp_path / "d.db", LiveSystems()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE t (a)")
    to = {"url": f"sqlite:///{file}", "table": "t", "columns": {"a": "payload.a"}}
    flow = flow_of({"publish": {"database": to}})

    messages = [Message({"a": n}) for n in (1, 10**30, 3)]
    result = CompiledFlow(flow).run(messages, live.systems())
    live.close()

    assert (payloads(result), codes(result)) == (
        [{"a": 1}, {"a": 3}],
        [("steps[0]", "DATABASE:REFUSED")],
    )
    with sqlite3.connect(file) as other:
        assert other.execute("SELECT a FROM t").fetchall() == [(1,), (3,)]


def test_values_of_a_database_are_those_of_json_times_and_bytes() -> None:
    row = {
        "exact": Decimal("12.50"),
        "whole": Decimal("7.00"),
        "long": Decimal("0.12345678901234567890"),
        "none": Decimal("NaN"),
        "at": datetime(2024, 5, 1, 12),
        "day": datetime(2024, 5, 1).date(),
        "id": UUID(int=7),
        "raw": memoryview(b"x"),
        "list": [Decimal("0.1"), {"n": Decimal(2)}],
    }

    assert plain_row(row) == {
        "exact": 12.5,
        "whole": 7,
        "long": "0.12345678901234567890",
        "none": "NaN",
        "at": datetime(2024, 5, 1, 12, tzinfo=timezone.utc),
        "day": "2024-05-01",
        "id": "00000000-0000-0000-0000-000000000007",
        "raw": b"x",
        "list": [0.1, {"n": 2}],
    }
