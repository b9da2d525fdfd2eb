"""`penstock deadletters` as a user meets it: list, show, replay with another value, drop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from penstock import Connection
from penstock.testing import fill

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
    command = [str(Path(sys.executable).with_name("penstock")), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=os.environ
    )
    assert done.returncode == code, done.stderr
    return done


def test_letters_are_listed_shown_mended_and_dropped(
    definition: Path, unique: str, tmp_path: Path
) -> None:
    penstock("run", "--once", definition)
    listed = penstock("deadletters", "list", definition)
    assert [line.split("\t")[:2] for line in listed.stdout.splitlines()[1:]] == [
        [f"{unique}-0-1", "decode"],
        [f"{unique}-0-2", "decode"],
    ]
    assert listed.stderr == "2 dead letters\n"

    told = penstock("deadletters", "show", "--json", definition, f"{unique}-0-2")
    shown = orjson.loads(told.stdout)
    assert (shown["value"], shown["error_type"]) == ('{"n": "x"}', "WrongType")
    raw = penstock("deadletters", "show", "--value", definition, f"{unique}-0-1")
    assert raw.stdout == "oops"

    mended = tmp_path / "value.json"
    mended.write_text('{"n": 7}')
    done = penstock(
        "deadletters", "replay", "--yes", definition, f"{unique}-0-2", "--value-file", mended
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
    assert f"there is no dead letter '{unique}-0-9'; none is waiting" in unknown.stderr
    wrong = penstock("deadletters", "list", definition, "--since", "yesterday", code=2)
    assert "--since 'yesterday' is not a time; allowed: ISO-8601" in wrong.stderr
