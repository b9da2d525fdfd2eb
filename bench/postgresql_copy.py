"""Arrow batches into PostgreSQL: Penstock's binary COPY encoder against ADBC's ingestion.

`python -m bench.postgresql_copy [--rows N] [--rounds N]`, in turns, best of N, one transaction a round.
Needs a PostgreSQL server and adbc-driver-postgresql, which nothing else of Penstock needs. The processor
time of this process is shown as well: the server's share is the same for both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from decimal import Decimal

import adbc_driver_postgresql.dbapi as adbc
import numpy as np
import psycopg
import pyarrow as pa
from tests.services.postgres import Postgres

from bench.harness import Side, race
from penstock.sinks.database.postgresql.binary import HEADER, TRAILER, binary

# As many rows as Spark gives a task at once.
BATCH = 10_000
COLUMNS = {
    "fixed": "id bigint, price double precision, size integer, at timestamptz, day date, ok boolean",
    "mixed": "id bigint, symbol text, price double precision, size integer, at timestamptz, note text",
    "decimal": "id bigint, symbol text, amount numeric(18,4), fee numeric(9,2)",
}


def column(name: str, rows: int) -> pa.Array:
    """Make one column; every tenth note is null."""
    numbers = np.arange(rows)
    makers: dict[str, Callable[[], pa.Array]] = {
        "id": lambda: pa.array(numbers),
        "price": lambda: pa.array(numbers * 0.37),
        "size": lambda: pa.array((numbers % 1000).astype(np.int32)),
        "at": lambda: pa.array(numbers * 1000 + 10**15, pa.timestamp("us", "UTC")),
        "day": lambda: pa.array((numbers % 20_000).astype(np.int32), pa.date32()),
        "ok": lambda: pa.array(numbers % 2 == 0),
        "symbol": lambda: pa.array([f"S{n % 500}" for n in numbers]),
        "note": lambda: pa.array([None if n % 10 == 0 else f"note {n}" for n in numbers]),
        "amount": lambda: pa.array([Decimal(int(n)) / 7 for n in numbers]).cast(
            pa.decimal128(18, 4), safe=False
        ),
        "fee": lambda: pa.array([Decimal(int(n) % 9999) / 100 for n in numbers]).cast(
            pa.decimal128(9, 2), safe=False
        ),
    }
    return makers[name]()


def batches(declared: str, rows: int) -> list[pa.RecordBatch]:
    names = [part.split()[0] for part in declared.split(", ")]
    table = pa.table({name: column(name, rows) for name in names})
    return table.to_batches(max_chunksize=BATCH)


class Target:
    """One table of the server, emptied before each round and counted after it."""

    def __init__(self, server: Postgres, name: str, given: list[pa.RecordBatch]) -> None:
        self.server, self.name, self.given = server, name, given
        self.rows = sum(batch.num_rows for batch in given)
        self.cpu: dict[str, float] = {}

    def side(self, name: str, load: Callable[[], None]) -> Side:
        def run() -> float:
            with self.server.connect() as session:
                session.execute(f"TRUNCATE {self.name}")  # type: ignore[arg-type]
            began, used = time.perf_counter(), time.process_time()
            load()
            took, used = time.perf_counter() - began, time.process_time() - used
            self.cpu[name] = min(used, self.cpu.get(name, used))
            stored = len(self.server.values(self.name, "id"))
            assert stored == self.rows, (name, stored)
            return took

        return Side(name, self.rows, run)

    def ours(self) -> None:
        copy = f"COPY {self.name} FROM STDIN (FORMAT binary)"
        with psycopg.connect(self.server.dsn()) as session, session.cursor().copy(copy) as rows:
            for part in self._parts():
                rows.write(part)

    def by_adbc(self) -> None:
        schema = self.given[0].schema
        with adbc.connect(self.server.dsn()) as session, session.cursor() as cursor:
            reader = pa.RecordBatchReader.from_batches(schema, self.given)
            cursor.adbc_ingest(self.name, reader, mode="append")
            session.commit()

    def _parts(self) -> Iterator[bytes | memoryview]:
        yield HEADER
        yield from map(binary, self.given)
        yield TRAILER


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.postgresql_copy")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with Postgres(fsync="on") as server:
        for kind, declared in COLUMNS.items():
            with server.connect() as session:
                session.execute(f"CREATE TABLE {kind} ({declared})")  # type: ignore[arg-type]
            target = Target(server, kind, batches(declared, given.rows))
            sides = [target.side("ours", target.ours), target.side("adbc", target.by_adbc)]
            best = race(kind, sides, given.rounds)
            for side in sides:
                print(
                    f"{kind:8} {side.name:5} {target.rows / best[side.name] / 1000:8.0f} k rows/s "
                    f"{target.cpu[side.name]:6.2f} s of processor time"
                )


if __name__ == "__main__":
    main()
