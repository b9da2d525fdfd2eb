"""`penstock deadletters` as a user meets it: list, show, replay with another value, drop."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from tests.services.command_line import run_here

from penstock import Connection
from penstock.testing import eventually, fill, read_all

DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: "{name}"}}
decode: {{json: {{schema: "n bigint not null"}}}}
sink: {{files: "{folder}/table"}}
delivery: exactly-once
state: "{folder}/state"
"""


@pytest.fixture
def definition(connection: Connection, unique: str, tmp_path: Path) -> Path:
    fill(connection, unique, ['{"n": 1}', "oops", '{"n": "x"}', '{"n": 2}'])
    file = tmp_path / "pipeline.yaml"
    file.write_text(DEFINITION.format(name=unique, brokers=connection.brokers, folder=tmp_path))
    return file


def penstock(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_here(*arguments)
    assert done.returncode == code, done.stderr
    return done


def test_letters_are_listed_shown_edited_and_dropped(
    definition: Path, unique: str, tmp_path: Path
) -> None:
    penstock("run", "--once", definition)
    listed = penstock("deadletters", "list", definition)
    assert [line.split("\t")[:2] for line in listed.stdout.splitlines()[1:]] == [
        [f"{unique}-0-1", "decode"],
        [f"{unique}-0-2", "decode"],
    ]
    assert listed.stderr == "2 dead letters\n"

    result = penstock("deadletters", "show", "--json", definition, f"{unique}-0-2")
    shown = orjson.loads(result.stdout)
    assert (shown["value"], shown["error_type"]) == ('{"n": "x"}', "WrongType")
    raw = penstock("deadletters", "show", "--value", definition, f"{unique}-0-1")
    assert raw.stdout == "oops"

    corrected = tmp_path / "value.json"
    corrected.write_text('{"n": 7}')
    done = penstock(
        "deadletters", "replay", "--yes", definition, f"{unique}-0-2", "--value-file", corrected
    )
    assert done.stderr.splitlines()[-1] == "1 dead letter replayed: 1 row written, 0 failed again"
    assert sorted(pq.read_table(tmp_path / "table").column("n").to_pylist()) == [1, 2, 7]

    dropped = penstock("deadletters", "drop", "--yes", definition, "--error", "not JSON")
    assert dropped.stderr == "1 dead letter dropped\n"
    assert penstock("deadletters", "list", "--json", definition).stdout == "[]\n"


def test_what_is_meant_must_be_said(definition: Path, unique: str) -> None:
    refused = penstock("deadletters", "replay", definition, code=2)
    assert "say which dead letters to replay: ids, --stage" in refused.stderr
    unknown = penstock("deadletters", "show", definition, f"{unique}-0-9", code=2)
    assert f"there is no dead letter '{unique}-0-9'; there is none" in unknown.stderr
    assert (
        penstock("deadletters", "list", definition, "--stage", "late").stderr == "0 dead letters\n"
    )
    wrong = penstock("deadletters", "list", definition, "--since", "yesterday", code=2)
    assert "--since 'yesterday' is not a time; allowed: ISO-8601" in wrong.stderr


BAD = 20


@pytest.fixture
def fixed(connection: Connection, unique: str, tmp_path: Path) -> Path:
    """A pipeline that has put 20 letters away, with a definition that now takes their records."""
    fill(connection, unique, ['{"n": 1}', *(f"bad {n:02}" for n in range(BAD))])
    text = DEFINITION.format(name=unique, brokers=connection.brokers, folder=tmp_path)
    database = f'{{database: {{url: "sqlite:///{tmp_path}/rows.db", table: rows}}}}'
    text = text.replace(f'{{files: "{tmp_path}/table"}}', database)
    before = tmp_path / "before.yaml"
    before.write_text(text)
    penstock("run", "--once", before)
    step = 'steps: [{sql: "SELECT CAST(substring(value, 5) AS bigint) AS n FROM rows"}]'
    decode = '{json: {schema: "n bigint not null"}}'
    file = tmp_path / "fixed.yaml"
    file.write_text(text.replace(decode, f"text\n{step}"))
    return file


def rows_of(tmp_path: Path) -> list[int]:
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        return sorted(n for (n,) in database.execute("SELECT n FROM rows"))


def replaying(file: Path) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("penstock")), "deadletters", "replay"]
    return subprocess.Popen(
        [*command, str(file), "--all", "--yes"], stdout=subprocess.DEVNULL, text=True
    )


def test_replays_at_the_same_time_on_two_machines_write_each_letter_once(
    fixed: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(fixed.read_text().replace("/state", "/state-of-another-machine"))

    both = [replaying(file) for file in (fixed, elsewhere)]
    assert [process.wait(300) for process in both] == [0, 0]
    # Where each saw the plan of the other, neither took the letters.
    penstock("deadletters", "replay", "--yes", fixed, "--all")

    assert rows_of(tmp_path) == sorted([1, *range(BAD)])
    assert penstock("deadletters", "list", "--json", fixed).stdout == "[]\n"


def test_a_replay_that_was_killed_is_finished_by_the_next_one(
    fixed: Path, connection: Connection, unique: str, tmp_path: Path
) -> None:
    def has_begun() -> bool:
        found = read_all(connection, f"{unique}.dead-letters")
        return any(("penstock.stage", b"begun") in record.headers for record in found)

    process = replaying(fixed)
    eventually(has_begun, timeout=120)
    process.kill()
    process.wait(60)

    penstock("deadletters", "replay", "--yes", fixed, "--all")

    assert rows_of(tmp_path) == sorted([1, *range(BAD)])
    assert penstock("deadletters", "list", "--json", fixed).stdout == "[]\n"
