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
from tests.services import postgres as postgres_server
from tests.services.postgres import Postgres

import penstock
from penstock import Connection, Pipeline
from penstock.imports.database.database_import import DatabaseImport
from penstock.pipeline.importing import Part, Place, Portion, Position, Reader, System
from penstock.testing import eventually, read_all

KILLS = 24
MOMENTS = ("opened", "sent", "taken", "settled")
ROWS = 6000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


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
        token = self.folder / f"kill-{moment}"
        try:
            token.rename(self.folder / f"killed-{moment}-{os.getpid()}-{os.urandom(4).hex()}")
        except FileNotFoundError:
            return
        with (self.folder / "places").open("a") as places:
            places.write(f"{type(self.own).__name__}\n")
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
        restart={"wait": "100ms", "longest": "1s"},
    )
    tokens = [tmp_path / f"kill-{moment}" for moment in MOMENTS]
    for token in tokens:
        token.touch()
    with penstock.start(definition) as running, postgres.connect() as session:
        for number in range(KILLS):
            token = tokens[number % len(tokens)]
            # What is left to read, when the chunks are done.
            session.execute(f"INSERT INTO {table} (n) SELECT 0 FROM generate_series(1, 50)")
            eventually(lambda token=token: not token.exists(), timeout=120)
            if number < KILLS - len(tokens):
                token.touch()
        eventually(
            lambda: len(read_all(connection, unique)) >= ROWS + KILLS * 50, timeout=120, every=1
        )
        assert running.is_active
    found = Counter(int(record.key or b"") for record in read_all(connection, unique))
    assert found == dict.fromkeys(range(1, ROWS + KILLS * 50 + 1), 1)
    killed = Counter((tmp_path / "places").read_text().split())
    assert sum(killed.values()) == KILLS, killed
    assert killed["ChunkPart"] >= 4, killed
    assert killed["DatabasePart"] >= 4, killed
