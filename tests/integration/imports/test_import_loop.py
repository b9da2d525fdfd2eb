"""An import into a topic: positions, new parts, bad records, systems that are away, two processes."""

from __future__ import annotations

import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Timer
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.imports.counting import CountingImport
from tests.own_package import installed
from typer.testing import CliRunner

import penstock
from penstock import Admin, Connection, Pipeline, State, memory_table
from penstock.cli.main import app
from penstock.errors import ConfigError, FencedError, TerminalError
from penstock.imports import ImportRunning
from penstock.imports.positions import (
    TOPIC,
    Positions,
    create_topic,
    ensure_topic,
    position_record,
    record_key,
    transaction_of,
)
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline.importing import UnreadableError
from penstock.testing import eventually, read_all


def topics(connection: Connection) -> set[str]:
    with Admin(connection) as admin:
        return {topic.name for topic in admin.topics()}


def invoke(arguments: list[str]) -> Any:
    return CliRunner().invoke(app, arguments)


def counted(connection: Connection, topic: str) -> dict[str, list[int]]:
    """Return the numbers of each part, in the order of the topic."""
    found: dict[str, list[int]] = defaultdict(list)
    for record in read_all(connection, topic):
        found[record.key.decode()].append(int(record.value))
    return dict(found)


def expected(until: int) -> list[int]:
    return [n for n in range(until) if n % 1000 != 999]


@pytest.fixture
def definition(connection: Connection, unique: str, tmp_path: Path) -> Pipeline:
    return Pipeline(
        name=unique,
        connection=connection,
        source=CountingImport(folder=tmp_path, poll=0.2, max_records=500),
        sink={"kafka": unique},
    )


def test_every_record_is_imported_once_whatever_the_number_of_runs(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    for until in (1500, 2100, 2100):
        for part in ("a", "b"):
            (tmp_path / f"{part}.count").write_text(str(until))
        with penstock.start(definition, once=True) as running:
            assert running.wait(60)
    assert counted(connection, unique) == {"a": expected(2100), "b": expected(2100)}
    letters = read_all(connection, f"{unique}.dead-letters")
    assert sorted(letter.value for letter in letters) == sorted([b"999", b"1999"] * 2)
    headers = dict(letters[0].headers)
    assert headers["penstock.error"].endswith(b"is unlucky")
    assert headers["penstock.stage"] == b"import"
    with Positions(connection) as positions:
        known = positions.read(unique)
    assert known.positions == {'{"file":"a"}': {"n": 2100}, '{"file":"b"}': {"n": 2100}}
    assert known.claim == 3


def test_new_parts_are_found_while_it_runs_each_in_its_topic(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    template = definition.model_copy(
        update={"source": definition.source.into(f"{unique}.{{file}}")}
    )
    with penstock.start(template) as running:
        for part in "abcdefg":
            (tmp_path / f"{part}.count").write_text("700")
            wanted = 700 * (ord(part) - ord("a") + 1)
            eventually(lambda rows=wanted: running.progress().rows == rows)
        assert running.progress().state is State.RUNNING
    assert running.progress().state is State.STOPPED
    for part in "abcdefg":
        assert counted(connection, f"{unique}.{part}") == {part: expected(700)}


def test_a_system_that_is_away_is_waited_for(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("300")
    with penstock.start(definition) as running:
        eventually(lambda: running.progress().rows == 300)
        (tmp_path / "away").touch()
        eventually(lambda: running.progress().state is State.RETRYING)
        assert running.progress().last_error == "the counters are away"
        (tmp_path / "a.count").write_text("400")
        (tmp_path / "away").unlink()
        eventually(lambda: running.progress().rows == 400)
        assert running.progress().state is State.RUNNING
    assert counted(connection, unique) == {"a": expected(400)}


def test_a_second_process_takes_over_and_the_first_one_ends(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("300")
    first = penstock.start(definition)
    assert isinstance(first, ImportRunning)
    eventually(lambda: first.progress().rows == 300)
    with penstock.start(definition) as second:
        (tmp_path / "a.count").write_text("900")
        with pytest.raises(FencedError, match="started by another process"):
            eventually(lambda: first.wait(1))
        eventually(lambda: second.progress().rows == 600)
    assert first.progress().state is State.FAILED
    assert counted(connection, unique) == {"a": expected(900)}


@pytest.mark.usefixtures("no_memory_tables")
def test_steps_and_a_sink_behind_the_import(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("1200")
    behind = Pipeline(
        name=unique,
        connection=connection,
        source=definition.source,
        decode="text",
        steps=[{"sql": "SELECT CAST(value AS INT) AS n FROM rows"}],
        sink={"memory": unique},
        delivery="exactly-once",
        state=str(tmp_path / "state"),
    )
    with penstock.start(behind, once=True) as running:
        assert running.wait(120)
    (tmp_path / "a.count").write_text("1500")
    with penstock.start(behind) as running:
        eventually(lambda: len(memory_table(unique)) == len(expected(1500)), timeout=120)
    assert sorted(memory_table(unique).to_pandas()["n"]) == expected(1500)


def test_an_operator_sets_and_resets_positions_while_it_runs(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    for part in "ab":
        (tmp_path / f"{part}.count").write_text("300")
    offsets = ["--brokers", connection.brokers, "offsets"]
    with penstock.start(definition) as running:
        eventually(lambda: running.progress().rows == 600)
        done = invoke([*offsets, "set", unique, '{"file": "a"}', '{"n": 200}'])
        assert done.exit_code == 0, done.output
        eventually(lambda: running.progress().rows == 700)
        done = invoke([*offsets, "reset", unique, '{"file": "b"}', "--yes"])
        assert done.exit_code == 0, done.output
        eventually(lambda: running.progress().rows == 1000)
        assert running.progress().state is State.RUNNING
        listed = invoke([*offsets, "list", unique, "--json"])
    assert json.loads(listed.stdout) == {
        "offsets": [
            {"partition": {"file": "a"}, "offset": {"n": 300}},
            {"partition": {"file": "b"}, "offset": {"n": 300}},
        ]
    }
    found = counted(connection, unique)
    assert found["a"] == [*range(300), *range(200, 300)]
    assert found["b"] == [*range(300), *range(300)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set", "NAME", "orders", "{}"], "'orders' is not a part"),
        (["set", "NAME", '{"file": "a"}', "17"], "'17' is not a position"),
        (
            ["set", "NAME", '{"file": "a"}', '{"n": 17}'],
            'has no position for {"file":"a"}; known: none; --new sets it all the same',
        ),
        (
            ["reset", "NAME", '{"file": "c"}', "--yes"],
            'has no position for {"file":"c"}; known: none',
        ),
    ],
)
def test_wrong_positions_are_named(
    connection: Connection, unique: str, arguments: list[str], message: str
) -> None:
    given = [unique if each == "NAME" else each for each in arguments]
    done = invoke(["--brokers", connection.brokers, "offsets", *given])
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)


def test_positions_that_vanish_while_it_runs_end_it(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("300")
    running = penstock.start(definition)
    eventually(lambda: running.progress().rows == 300)
    with Transaction(connection, f"{unique}-test", {}) as transaction:
        transaction.begin()
        # A topic that was deleted and recreated knows of no claim.
        transaction.send(
            pa.record_batch({"key": [record_key(unique, None)], "value": [None]}), TOPIC
        )
        transaction.commit()
    with pytest.raises(TerminalError, match="are gone from the topic"):
        eventually(lambda: running.wait(1))
    assert counted(connection, unique) == {"a": expected(300)}


def test_an_import_of_another_package(
    connection: Connection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal.txt"
    with installed(tmp_path, monkeypatch):
        for text in ("one\ntwo\nthr", "ee\n"):
            with journal.open("a") as file:
                file.write(text)
            definition = Pipeline(
                name=unique,
                connection=connection,
                source={"journal": str(journal)},
                sink={"kafka": unique},
            )
            with penstock.start(definition, once=True) as running:
                assert running.wait(60)
    assert [each.value for each in read_all(connection, unique)] == [b"one", b"two", b"three"]


def test_measurements_of_this_machine(connection: Connection, unique: str) -> None:
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"host_metrics": {"interval": "1s", "host": "here", "top": 3}},
        sink={"kafka": f"{unique}.{{kind}}"},
    )
    with penstock.start(definition) as running:
        wanted = {f"{unique}.load", f"{unique}.process"}
        eventually(lambda: wanted <= topics(connection))
        eventually(lambda: len(read_all(connection, f"{unique}.process")) >= 3, every=0.5)
        eventually(lambda: len(read_all(connection, f"{unique}.load")) >= 2, every=0.5)
        assert running.progress().state is State.RUNNING
    load = [json.loads(each.value) for each in read_all(connection, f"{unique}.load")]
    assert load[0]["host"] == "here" and load[0]["cpus"] >= 1
    assert load[0]["time"] + 1000 <= load[1]["time"]
    processes = read_all(connection, f"{unique}.process")
    assert len({json.loads(each.value)["pid"] for each in processes[:3]}) == 3
    assert {each.key for each in processes} == {b"here"}


def test_positions_wait_for_an_open_transaction_of_another_part(
    connection: Connection, unique: str
) -> None:
    """Readers of committed records see nothing after it: the own position would be an old one."""
    create_topic(connection)
    place = '{"file":"a"}'
    with (
        Transaction(connection, f"{unique}-slow", {}) as slow,
        Transaction(connection, f"{unique}-own", {}) as own,
        Positions(connection) as positions,
    ):
        before = positions.read(unique)
        slow.begin()
        slow.send(position_record(f"{unique}-other", place, {"n": 1}), TOPIC)
        slow._client.flush(30)
        own.begin()
        own.send(position_record(unique, place, {"n": 7}), TOPIC)
        own.commit()
        ending = Timer(2.0, slow.commit)
        ending.start()
        assert positions.read(unique, before).positions == {place: {"n": 7}}
        ending.join()
        assert positions.read(unique).positions == {place: {"n": 7}}


def test_a_transaction_of_a_task_that_was_killed_before_its_commit_is_ended(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    """Otherwise no position is seen until Kafka ends it, after two minutes."""
    create_topic(connection)
    place = '{"file":"a"}'
    killed = Transaction(connection, transaction_of(unique, place), {})
    killed.begin()
    killed.send(pa.record_batch({"key": [b"a"], "value": [b"-1"]}), unique)
    killed.send(position_record(unique, place, {"n": 1}), TOPIC)
    killed._client.flush(30)
    (tmp_path / "a.count").write_text("300")
    (tmp_path / "b.count").write_text("300")
    with penstock.start(definition, once=True) as running:
        assert running.wait(60)
    assert counted(connection, unique) == {part: [*range(300)] for part in "ab"}


def test_a_topic_that_is_deleted_or_takes_only_small_records(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("10")
    with penstock.start(definition) as running, Admin(connection) as admin:
        eventually(lambda: running.progress().rows == 10)
        admin.delete_topic(unique)
        (tmp_path / "a.count").write_text("20")
        eventually(lambda: unique in topics(connection) and counted(connection, unique))
        eventually(lambda: running.progress().state is State.RUNNING)
    assert counted(connection, unique)["a"][-10:] == [*range(10, 20)]


def test_a_record_that_is_too_large_for_the_topic_is_a_dead_letter(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(unique, config={"max.message.bytes": 20_000})
    lines = [b"x" * size for size in (10, 30_000, 15_000, 12_000, 20)]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines) + b"\n")
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"files": {"folder": str(tmp_path)}},
        sink={"kafka": unique},
    )
    with penstock.start(definition, once=True) as running:
        assert running.wait(120)
    assert sorted(len(each.value) for each in read_all(connection, unique)) == [
        *(10, 20, 12_000, 15_000)
    ]
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    assert b"the record has 30000 bytes" in (dict(letter.headers)["penstock.error"] or b"")
    file = tmp_path / "lines.yaml"
    file.write_text(
        f"name: {unique}\nconnection: {{brokers: '{connection.brokers}'}}\n"
        f"source: {{files: '{tmp_path}'}}\nsink: {{kafka: {unique}}}\n"
    )
    listed = invoke(["deadletters", "list", str(file), "--stage", "import", "--json"])
    (shown,) = json.loads(listed.stdout)
    assert shown["id"] == f"{unique}.dead-letters-{letter.partition}-{letter.offset}"
    assert (shown["stage"], shown["error_type"]) == ("import", "TooLargeError")
    refused = invoke(["deadletters", "replay", str(file), "--all", "--yes"])
    assert "in no topic before" in str(refused.exception)
    assert invoke(["deadletters", "drop", str(file), shown["id"], "--yes"]).exit_code == 0
    assert json.loads(invoke(["deadletters", "list", str(file), "--json"]).stdout) == []


def test_once_ends_where_an_operator_has_to_make_something_readable(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"files": {"folder": str(tmp_path / "missing")}},
        sink={"kafka": unique},
    )
    with (
        penstock.start(definition, once=True) as running,
        pytest.raises(UnreadableError, match="missing is not there"),
    ):
        running.wait(60)
    assert running.progress().state is State.FAILED


def test_many_small_parts_are_read_by_few_tasks(
    connection: Connection, unique: str, tmp_path: Path, definition: Pipeline
) -> None:
    names = [f"p{number}" for number in range(40)]
    for name in names:
        (tmp_path / f"{name}.count").write_text("3")
    with penstock.start(definition, once=True) as running:
        assert running.wait(120)
    assert counted(connection, unique) == {name: [0, 1, 2] for name in names}


@pytest.fixture
def behind(connection: Connection, unique: str, tmp_path: Path, definition: Pipeline) -> Pipeline:
    return Pipeline(
        name=unique,
        connection=connection,
        source=definition.source,
        decode="text",
        sink={"memory": unique},
        state=str(tmp_path / "state"),
    )


def test_a_second_process_that_is_refused_does_not_end_the_first_one(
    unique: str, tmp_path: Path, behind: Pipeline
) -> None:
    (tmp_path / "a.count").write_text("300")
    with penstock.start(behind) as first:
        eventually(lambda: len(memory_table(unique)) == 300, timeout=120)
        with pytest.raises(ConfigError, match="already runs in another process"):
            penstock.start(behind)
        (tmp_path / "a.count").write_text("500")
        eventually(lambda: len(memory_table(unique)) == 500, timeout=120)
        assert first.is_active


def test_once_imports_everything_also_where_more_waits_than_is_held(
    unique: str, tmp_path: Path, behind: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.imports.intake._MOST", 100)
    monkeypatch.setattr("penstock.imports.intake._EVERY", 0.0)
    monkeypatch.setattr("penstock.imports.rounds._SHARE", 1)
    for part in "abcdefgh":
        (tmp_path / f"{part}.count").write_text("300")
    with penstock.start(behind, once=True) as running:
        assert running.wait(120)
    assert len(memory_table(unique)) == 2400


def test_foreign_records_among_the_positions_are_left_out(
    connection: Connection, unique: str
) -> None:
    create_topic(connection)
    own = record_key(unique, '{"a":1}')
    keys = [b"\xff", b"[" * 5000, b"5", b"[1,2]", record_key(unique, None), own, own]
    values = [b"{}", b"{}", b"{}", b"{}", b"5", b'{"n":1}', b'"text"']
    with Transaction(connection, f"{unique}-test", {}) as transaction:
        transaction.begin()
        records = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
        transaction.send(pa.record_batch(records), TOPIC)
        transaction.commit()
    with Positions(connection) as positions:
        known = positions.read(unique)
    assert (known.positions, known.claim) == ({'{"a":1}': {"n": 1}}, 0)


def test_a_topic_that_many_create_at_once_is_refused_to_none(
    connection: Connection, unique: str
) -> None:
    def create(number: int) -> None:
        with Admin(connection) as admin:
            start.wait()
            ensure_topic(admin, f"{unique}-{number // 8}", 1, {})
            assert admin.topic_ids([f"{unique}-{number // 8}"])

    start = Barrier(32)
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(create, range(32))) == [None] * 32


def test_a_positions_topic_that_would_forget_is_refused(connection: Connection) -> None:
    create_topic(connection)
    with Admin(connection) as admin:
        admin.alter_topic(TOPIC, {"cleanup.policy": "delete"})
        try:
            with pytest.raises(ConfigError, match="does not keep the positions of imports"):
                create_topic(connection)
        finally:
            admin.alter_topic(TOPIC, {"cleanup.policy": "compact"})
    create_topic(connection)
