"""`penstock run` and `penstock check` as a user meets them: what is printed, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from tests.services.command_line import run_here

from penstock import Connection
from penstock.testing import eventually, fill

DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: "{name}"}}
decode: {{json: {{schema: "n bigint not null"}}}}
sink: {{files: "{folder}/table"}}
state: "{folder}/state"
"""


def command(*arguments: object) -> list[str]:
    return [str(Path(sys.executable).with_name("penstock")), *map(str, arguments)]


def penstock(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | environment,
    )


@pytest.fixture
def definition(connection: Connection, unique: str, tmp_path: Path) -> Path:
    file = tmp_path / "pipeline.yaml"
    file.write_text(DEFINITION.format(name=unique, brokers=connection.brokers, folder=tmp_path))
    return file


def test_run_once_fills_the_table_and_prints_only_its_own_lines(
    connection: Connection, unique: str, definition: Path, tmp_path: Path
) -> None:
    fill(connection, unique, [{"n": n} for n in range(100)])

    done = penstock("run", "--once", definition)

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == f"starting {unique} (Spark local[*,2])"
    assert lines[-1].startswith(f"{unique} STOPPED: 1 batches, 100 rows, ")
    assert all(line.startswith((unique, "starting")) for line in lines), done.stderr
    assert sorted(pq.read_table(tmp_path / "table").column("n").to_pylist()) == list(range(100))


def test_ctrl_c_finishes_the_batch_and_the_next_run_goes_on(
    connection: Connection, unique: str, definition: Path, tmp_path: Path
) -> None:
    fill(connection, unique, [{"n": n} for n in range(10)])
    running = subprocess.Popen(command("run", definition), stderr=subprocess.PIPE, text=True)
    eventually(lambda: list((tmp_path / "table").glob("*.parquet")), timeout=300)

    running.send_signal(signal.SIGINT)
    _, printed = running.communicate(timeout=60)

    assert running.returncode == 130
    assert "stopping after the current batch" in printed
    assert "Traceback" not in printed
    fill(connection, unique, [{"n": n} for n in range(10, 15)])
    assert run_here("run", "--once", definition).returncode == 0
    assert sorted(pq.read_table(tmp_path / "table").column("n").to_pylist()) == list(range(15))


def refused(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    for part in parts:
        assert part in done.stderr
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr


def test_several_share_one_engine_and_one_that_fails_leaves_the_others_alone(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    files = []
    for number, steps in enumerate(
        ("", "steps: [{sql: SELECT raise_error('no') AS n FROM rows}]\n")
    ):
        name, folder = f"{unique}-{number}", tmp_path / str(number)
        fill(connection, name, [{"n": n} for n in range(10)])
        text = DEFINITION.format(name=name, brokers=connection.brokers, folder=folder)
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(f"{text}{steps}max_refused: 0\nrestart: {{limit: 0}}\n")

    done = penstock("run", "--once", *reversed(files))

    assert done.returncode == 1, done.stderr
    assert f"starting {unique}-1, {unique}-0 (Spark local[*,2])" in done.stderr
    assert f"{unique}-1" in done.stderr.splitlines()[-1]
    assert pq.read_table(tmp_path / "0" / "table").num_rows == 10


def test_two_of_one_name_are_refused(definition: Path, unique: str) -> None:
    done = penstock("run", definition, definition)

    assert done.returncode == 2
    assert f"both define a pipeline '{unique}'" in done.stderr


def test_bad_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\nsource: {kafka: [\n")
    refused(penstock("run", tmp_path / "bad.yaml"), 2, "line 3", "not YAML")


def test_every_mistake_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: x\nsource:\n  kafka: {topic: t}\ndecode: {json: {schema: n strin}}\n"
        "sink: {files: {path: /tmp/t, partition_by: 5}}\ndelivery: exactly-once\n"
    )
    refused(
        penstock("check", tmp_path / "bad.yaml"),
        2,
        "line 3: source.kafka.topic: is not an option here; did you mean 'topics'?",
        "line 4: decode.json.schema: ",
        "did you mean 'string'?",
        "line 5: sink.files.partition_by: ",
    )


def test_check_prints_problems_as_json_for_scripts(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\nsource: {kafka: t}\n")
    done = penstock("check", "--json", tmp_path / "bad.yaml")
    assert done.returncode == 2
    assert orjson.loads(done.stdout) == [{"path": ["sink"], "message": "is required", "line": 1}]


def test_exactly_once_is_refused_with_the_reason_where_the_sink_cannot(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: x\nsource: {kafka: t}\nsink: console\ndelivery: exactly-once\n"
    )
    refused(
        penstock("check", tmp_path / "bad.yaml"),
        2,
        "the sink 'console' cannot promise exactly-once",
        "it can promise at-least-once, at-most-once",
    )


def test_a_missing_definition_is_named(tmp_path: Path) -> None:
    refused(penstock("run", tmp_path / "none.yaml"), 2, "none.yaml", "No such file")


def test_a_parser_that_is_not_there_is_refused_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: x\nsource: {kafka: t}\nsink: console\n"
        "decode: {python: {function: 'nowhere:parse', schema: n int}}\n"
    )
    refused(penstock("run", tmp_path / "bad.yaml"), 2, "line 4", "there is no module 'nowhere'")


def test_a_broker_that_is_away_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "away.yaml").write_text(
        "name: x\nconnection: {bootstrap.servers: '127.0.0.1:1'}\nsource: {kafka: t}\nsink: console\n"
        f"state: {tmp_path}/state\n"
    )
    refused(penstock("run", tmp_path / "away.yaml"), 4, "127.0.0.1:1", "penstock broker start")


def test_missing_java_is_reported_with_how_to_get_it(
    connection: Connection, unique: str, definition: Path, tmp_path: Path
) -> None:
    fill(connection, unique, [{"n": 1}])
    without = (
        "import pathlib, penstock.embedded.java as java\n"
        "java.JVM_ROOT = pathlib.Path('/nonexistent')\n"
        f"from penstock.cli import main; main(['run', {str(definition)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", without],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PATH": "/nonexistent", "JAVA_HOME": str(tmp_path)},
    )
    refused(done, 3, "Java", "openjdk-17")


def test_a_state_folder_that_cannot_be_written_is_named(
    connection: Connection, unique: str, definition: Path, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("not a folder")
    refused(penstock("run", definition), 3, f"{tmp_path}/state", "give it a folder with 'state:'")
