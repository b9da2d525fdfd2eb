"""The source database under kill -9 of its tasks, in chunks and after them: each row is there once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.kills import kills
from tests.services import postgres as postgres_server
from tests.services.postgres import Postgres

import penstock
from penstock import Connection, Pipeline
from penstock.imports.database.database_import import DatabaseImport
from penstock.pipeline.importing import Part, Place, Portion, Position, Reader, System
from penstock.testing import eventually, read_all

MOMENTS = ("opened", "sent", "taken", "settled")
# How often a task of each kind is killed at each moment.
# At each moment: 24 in all with PENSTOCK_KILLS=24.
KILLS = {"PlanPart": 1, "ChunkPart": kills(8) // 8, "DatabasePart": kills(8) // 8}
ROWS, MORE = 4000, 50
# Seconds for one step, which a machine with many other programs needs.
_LIMIT = 900.0

pytestmark = [pytest.mark.slow, pytest.mark.by_turns("kills"), pytest.mark.timeout(3600)]


class MortalDatabase(DatabaseImport):
    """Reads tables, and is killed where a file says so: the process of the task, and nothing else."""

    name = "mortal_database"
    folder: Path

    def system(self) -> System:
        return MortalSystem(super().system(), self.folder)


class MortalSystem(System):
    def __init__(self, own: System, folder: Path) -> None:
        self._own, self._folder = own, folder

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        return [MortalPart(part, self._folder) for part in self._own.pending(positions)]

    def close(self) -> None:
        self._own.close()


@dataclass(frozen=True)
class MortalPart(Part):
    own: Part
    folder: Path

    @property
    def place(self) -> Place:
        return self.own.place

    @property
    def names(self) -> Mapping[str, str]:
        return self.own.names

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        with self.own.open(position) as reader:
            self.die("opened")
            yield MortalReader(self, reader)

    def die(self, moment: str) -> None:
        for token in self.folder.glob(f"{type(self.own).__name__}-{moment}-*"):
            try:
                token.unlink()
            except FileNotFoundError:  # it was for another task
                continue
            os.kill(os.getpid(), signal.SIGKILL)


class MortalReader(Reader):
    def __init__(self, part: MortalPart, own: Reader) -> None:
        self._part, self._own = part, own

    def take(self, most: int) -> Iterator[Portion]:
        for taken in self._own.take(most):
            yield taken
            self._part.die("sent")
        self._part.die("taken")

    def settle(self) -> None:
        self._part.die("settled")


def test_every_row_is_there_once_after_kills_of_tasks_in_chunks_and_after_them(
    connection: Connection, unique: str, postgres: Postgres, tmp_path: Path
) -> None:
    table = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (id bigserial PRIMARY KEY, n int)")
        session.execute(f"INSERT INTO {table} (n) SELECT n FROM generate_series(1, {ROWS}) n")
        session.execute(f"ANALYZE {table}")
    definition = Pipeline(
        name=unique,
        connection=connection,
        source=MortalDatabase(
            url=postgres.url,
            password=postgres_server.PASSWORD,
            tables=table,
            mode="incrementing",
            incrementing_column="id",
            chunk_rows=400,
            max_records=40,
            poll=0.1,
            folder=tmp_path,
        ),
        sink={"kafka": unique},
        delivery="exactly-once",
        restart={"wait": "100ms", "longest": "1s", "limit": 1000},
    )
    for kind in ("PlanPart", "ChunkPart"):
        touch(tmp_path, kind)
    with penstock.start(definition) as running, postgres.connect() as session:
        eventually(lambda: not list(tmp_path.iterdir()), timeout=_LIMIT)
        # Not by its progress, which misses what a task has committed and not reported.
        eventually(lambda: len(read_all(connection, unique)) >= ROWS, timeout=_LIMIT, every=0.5)
        rows = ROWS
        for token in touch(tmp_path, "DatabasePart"):
            while token.exists():
                session.execute(f"INSERT INTO {table} (n) SELECT 0 FROM generate_series(1, {MORE})")
                rows += MORE
                eventually(
                    lambda rows=rows: len(read_all(connection, unique)) >= rows,
                    timeout=_LIMIT,
                    every=0.5,
                )
        assert running.is_active
    found = Counter(int(record.key or b"") for record in read_all(connection, unique))
    assert found == dict.fromkeys(range(1, rows + 1), 1)


def touch(folder: Path, kind: str) -> list[Path]:
    """Say that tasks of a kind are to be killed."""
    tokens = [folder / f"{kind}-{each}-{at}" for each in MOMENTS for at in range(KILLS[kind])]
    for token in tokens:
        token.touch()
    return tokens
