"""A database is away while a table is imported from it and a topic is written to it: nothing is lost.

`python -m tests.faults.database_away --seconds 120` prints the states and the numbers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.suite.load import Load, is_bad
from tests.services.mariadb import MariaDb
from tests.services.postgres import PASSWORD, Postgres

import penstock
from penstock import Broker, Connection, Pipeline, Running, State
from penstock.engine import stop_session
from penstock.testing import eventually, read_all

ROWS = 5000
# Seconds for one step, which a machine with many other programs needs.
_LIMIT = 900.0
_STATEMENTS = {
    Postgres: (
        "CREATE TABLE orders (id bigserial PRIMARY KEY, n int)",
        f"INSERT INTO orders (n) SELECT n FROM generate_series(1, {ROWS}) n",
    ),
    MariaDb: (
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, n int)",
        f"INSERT INTO orders (n) SELECT seq FROM seq_1_to_{ROWS}",
    ),
}
_RESTART = {"wait": "200ms", "longest": "5s"}


@dataclass
class Outcome:
    """What came through, of how many."""

    away: float
    states: dict[str, str]
    imported: int
    imported_twice: int
    rows_imported_of: int
    written: int
    written_twice: int
    rows_written_of: int
    caught_up_after: float

    @property
    def is_exact(self) -> bool:
        imported = self.imported == self.rows_imported_of and not self.imported_twice
        return imported and self.written == self.rows_written_of and not self.written_twice


def away(
    connection: Connection, server: Postgres | MariaDb, name: str, folder: Path, seconds: float
) -> Outcome:
    """Stop the server for some time under both pipelines, start it, and count."""
    create, fill = _STATEMENTS[type(server)]
    where = {"url": server.url, "password": PASSWORD}
    incremental = {"tables": "orders", "mode": "incrementing", "incrementing_column": "id"}
    reading = Pipeline(
        name=f"{name}-in",
        connection=connection,
        source={"database": where | incremental | {"poll": 0.2}},
        sink={"kafka": f"{name}-in"},
        delivery="exactly-once",
        restart=_RESTART,
    )
    writing = Pipeline(
        name=f"{name}-out",
        connection=connection,
        source={"kafka": f"{name}-out"},
        decode={"json": {"schema": "n bigint not null"}},
        sink={"database": where | {"table": "written"}},
        delivery="exactly-once",
        restart=_RESTART,
        state=str(folder),
    )
    _execute(server, create)
    _execute(server, fill)
    with (
        Load(connection, f"{name}-out") as load,
        penstock.start(reading) as one,
        penstock.start(writing) as other,
    ):
        both = {"source": one, "sink": other}
        eventually(lambda: all(each.progress().batches for each in both.values()), timeout=_LIMIT)
        server.stop()
        stopped = time.monotonic()
        states = {name: _state(running, State.RETRYING) for name, running in both.items()}
        time.sleep(max(0.0, seconds - (time.monotonic() - stopped)))
        down = time.monotonic() - stopped
        server.start()
        began = time.monotonic()
        _execute(server, fill)
        load.finish()
        wanted = sum(not is_bad(n) for n in range(load.sent))
        eventually(lambda: one.progress().rows >= 2 * ROWS, timeout=_LIMIT)
        eventually(lambda: len(server.values("written", "n")) >= wanted, timeout=_LIMIT)
        caught_up = time.monotonic() - began
        states |= {f"{name}, after": _state(each, State.RUNNING) for name, each in both.items()}
    found = Counter(int(record.key or b"") for record in read_all(connection, f"{name}-in"))
    written = Counter(server.values("written", "n"))
    return Outcome(
        round(down, 1), states, len(found), _repeated(found), 2 * ROWS, len(written),
        _repeated(written), wanted, round(caught_up, 1),
    )  # fmt: skip


def _execute(server: Postgres | MariaDb, statement: str) -> None:
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(statement)


def _state(running: Running, wanted: State) -> str:
    eventually(lambda: running.progress().state is wanted, timeout=_LIMIT)
    return wanted.value


def _repeated(found: Counter[int]) -> int:
    return sum(times - 1 for times in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.database_away")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--mariadb", action="store_true", help="instead of PostgreSQL")
    given = parser.parse_args()
    database = MariaDb() if given.mariadb else Postgres(fsync="on")
    with Broker() as broker, database as server, TemporaryDirectory() as folder:
        outcome = away(broker.connection, server, "orders", Path(folder), given.seconds)
        stop_session()
    print(outcome)
    sys.exit(not outcome.is_exact)


if __name__ == "__main__":
    main()
