"""What the tests of steps with state share: trades with a time of their own, and a run to the end."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow.parquet as pq

from penstock import Connection, start
from penstock.testing import read_all

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
SCHEMA = "id bigint, symbol string, size int, time timestamp"


def at(second: float) -> str:
    """The time so many seconds after the start."""
    return (START + timedelta(seconds=second)).isoformat()


def trade(number: int, second: float | None, symbol: str = "A", size: int = 1) -> dict[str, Any]:
    time = None if second is None else at(second)
    return {"id": number, "symbol": symbol, "size": size, "time": time}


def second(time: datetime) -> float:
    """The other way round."""
    return (time.replace(tzinfo=timezone.utc) - START).total_seconds()


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def windows(folder: Any) -> list[tuple[Any, ...]]:
    """Rows of a table of windows: start, end, and the rest in the order of the columns."""
    rows = pq.read_table(folder).to_pylist()
    return sorted(
        (second(row.pop("window_start")), second(row.pop("window_end")), *row.values())
        for row in rows
    )


def dead(connection: Connection, definition: Any) -> list[tuple[str, bytes, str]]:
    """Stage, value and error of the dead letters."""
    letters = read_all(connection, f"{definition.name}.dead-letters")
    found = [(dict(letter.headers), letter.value) for letter in letters]
    return [
        (
            headers["penstock.stage"].decode(),
            value,
            f"{headers['penstock.error_type'].decode()}: {headers['penstock.error'].decode()}",
        )
        for headers, value in found
    ]
