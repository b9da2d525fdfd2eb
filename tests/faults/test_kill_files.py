"""Files under kill -9 of their task, appended to and rotated meanwhile: each record is there once."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
from tests.faults.killed_tasks import kill_after
from tests.faults.kills import kills

from penstock import Connection
from penstock.imports.files import FilesImport
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.testing import read_all

KILLS = kills(3)
MORE = 20_000
# How a number is written, and what its record is.
FORMATS: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "lines": (str, str),
    "json_lines": (lambda n: f' {{"n": {n}}}', lambda n: f'{{"n": {n}}}'),
    "csv": (lambda n: f'{n},"a\n{n}"', lambda n: f'{{"n":"{n}","text":"a\\n{n}"}}'),
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.by_turns
@pytest.mark.parametrize("format", FORMATS)
def test_killed_tasks_lose_and_repeat_nothing(
    connection: Connection, unique: str, tmp_path: Path, format: str
) -> None:
    written, wanted = FORMATS[format]
    create_topic(connection)
    source = FilesImport(folder=str(tmp_path), format=format, max_records=1000)
    file = tmp_path / "app.log"
    file.write_text("n,text\n" if format == "csv" else "")
    count = 0
    chance = random.Random(unique)

    def errand() -> Errand:
        (part,) = source.system().pending({})
        return Errand(unique, 0, part, connection, unique, f"{unique}.letters", Known(), 1000)

    with Admin(connection) as admin:
        admin.create_topic(unique, 1)
        for number in range(KILLS):
            with file.open("a") as out:
                out.writelines(f"{written(n)}\n" for n in range(count, count + MORE))
            count += MORE
            file = file.rename(tmp_path / f"app.{number}.log")
            # More than one transaction, less than all of it.
            kill_after(errand(), admin, chance.randint(2000, 9000))
    assert 0 < len(read_all(connection, unique)) < count
    assert run(errand(), inf).error is None
    found = [each.value.decode() for each in read_all(connection, unique)]
    assert found == [wanted(n) for n in range(count)]
    print(f"{format}: {KILLS} kills, {count} records, none lost, none twice")
