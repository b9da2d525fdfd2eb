"""Sessions that commit out of order, against the modes of the source `database`: no row is missed.

`python -m tests.faults.late_commits --minutes 5` starts a PostgreSQL and prints the numbers; the suite
runs the same for seconds.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import psycopg
from tests.integration.imports.database_rounds import Rounds
from tests.services import postgres as postgres_server
from tests.services.postgres import Postgres

from penstock.testing import eventually

WRITERS = 6
MODES: list[dict[str, str]] = [
    {"mode": "incrementing", "incrementing_column": "id"},
    {"mode": "timestamp", "timestamp_column": "at"},
    {"mode": "timestamp+incrementing", "timestamp_column": "at", "incrementing_column": "id"},
]


class Writers:
    """Sessions that insert in transactions of random lengths; some take numbers first, some roll back."""

    def __init__(self, postgres: Postgres, table: str, seed: int, seconds: float) -> None:
        self._postgres, self._table, self._seed = postgres, table, seed
        self._seconds = seconds
        self.committed: list[set[int]] = [set() for _ in range(WRITERS)]
        self.rolled_back = 0
        self._threads = [threading.Thread(target=self._write, args=(at,)) for at in range(WRITERS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def are_writing(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    @property
    def numbers(self) -> list[int]:
        return sorted(set().union(*self.committed))

    def _write(self, at: int) -> None:
        chance = random.Random(self._seed + at)
        until = time.monotonic() + self._seconds
        with psycopg.connect(self._postgres.dsn()) as session:
            while time.monotonic() < until:
                numbers = self._transaction(session, chance)
                if chance.random() < 0.1:
                    session.rollback()
                    self.rolled_back += 1
                else:
                    session.commit()
                    self.committed[at] |= numbers

    def _transaction(self, session: psycopg.Connection[Any], chance: random.Random) -> set[int]:
        numbers = set()
        if chance.random() < 0.3:
            session.execute("SELECT pg_current_xact_id()")  # a transaction's number that is early
        for _ in range(chance.randint(1, 4)):
            if chance.random() < 0.3:
                # The number is taken in one statement, and used in a later one.
                query = f"SELECT nextval('{self._table}_id_seq')"
                (number,) = session.execute(query).fetchone() or (0,)
                time.sleep(chance.random() * 0.1)
                session.execute(f"INSERT INTO {self._table} (id, n) VALUES (%s, 'x')", [number])
            else:
                query = f"INSERT INTO {self._table} (n) VALUES ('x') RETURNING id"
                (number,) = session.execute(query).fetchone() or (0,)
            numbers.add(number)
            time.sleep(chance.random() * 0.1)
        if chance.random() < 0.05:
            time.sleep(chance.random() * 3)
        return numbers


@dataclass
class Outcome:
    """What one mode has read of what was committed."""

    mode: str
    seed: int
    committed: int = 0
    rolled_back: int = 0
    transactions: int = 0
    # How often a row came after one with a greater number.
    out_of_order: int = 0
    missed: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)


def create_table(postgres: Postgres, name: str) -> None:
    """Create the table that the writers fill."""
    columns = "id bigserial PRIMARY KEY, at timestamptz DEFAULT now(), n text"
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {name} ({columns})")
        session.execute(f"CREATE INDEX ON {name} (at, id)")


def late(postgres: Postgres, table: str, mode: dict[str, str], seconds: float) -> Outcome:
    """Read a table in a mode while it is written, and compare."""
    outcome = Outcome(mode["mode"], random.randrange(1 << 30))
    options = {"url": postgres.url, "password": postgres_server.PASSWORD, "tables": table}
    with Rounds(**options, **mode) as rounds:
        with Writers(postgres, table, outcome.seed, seconds) as writers:
            while writers.are_writing:
                rounds.run()
                time.sleep(0.01)
        eventually(lambda: rounds.run() >= 0 and len(rounds.records) >= len(writers.numbers))
        assert rounds.run() == 0
        order = rounds.column("id")
        outcome.transactions = rounds.transactions
    found = Counter(order)
    outcome.committed, outcome.rolled_back = len(writers.numbers), writers.rolled_back
    outcome.out_of_order = sum(one > other for one, other in pairwise(order))
    outcome.missed = sorted(set(writers.numbers) - set(found))
    outcome.repeated = sorted(number for number, times in found.items() if times > 1)
    outcome.repeated += sorted(set(found) - set(writers.numbers))
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.late_commits")
    parser.add_argument("--minutes", type=float, default=5)
    minutes = parser.parse_args().minutes
    with Postgres() as postgres, ThreadPoolExecutor() as pool:

        def run(number: int) -> Outcome:
            create_table(postgres, f"late_{number}")
            return late(postgres, f"late_{number}", MODES[number], minutes * 60)

        outcomes = list(pool.map(run, range(len(MODES))))
    for each in outcomes:
        print(each)
    sys.exit(any(each.missed or each.repeated for each in outcomes))


if __name__ == "__main__":
    main()
