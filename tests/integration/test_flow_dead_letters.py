"""Dead letters of flows on the command line: shown, fixed, replayed once from the failed step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.services.command_line import run_here
from tests.services.json_api import Answer, Seen
from tests.services.orders_api import OrdersApi

from penstock import Admin, Connection, start
from penstock.flows.definition.reading import parse_flow
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.testing import fill, read_all

DIVIDE = """\
name: {name}
connection: {{addresses: "{brokers}"}}
trigger: {{kafka: {{topics: {name}.in, metadata: [key], advanced: {{initial_offset: oldest}}}}}}
steps:
  - split: payload.list
  - set: {{variable: {{of: "attribute.offset"}}}}
  - id: divide
    map: {{result: "10 / payload", of: variable.of}}
  - id: publish
    publish: {{kafka: {{topic: {name}.out}}}}
"""
POST = """\
name: {name}
connection: {{addresses: "{brokers}"}}
trigger: {{kafka: {{topics: {name}.in, advanced: {{initial_offset: oldest}}}}}}
steps:
  - id: post
    publish: {{http: {{url: "{url}"}}}}
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def run(text: str) -> Any:
    """Process the backlog of a flow; return its progress."""
    with start(flow_pipeline(parse_flow(text)), once=True) as running:
        assert running.wait(180)
        return running.progress()


def penstock(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_here(*arguments)
    assert done.returncode == code, done.stderr
    return done


def ids(file: Path) -> list[str]:
    listed = json.loads(penstock("deadletters", "list", "--json", file).stdout)
    return [each["id"] for each in listed]


def test_letters_are_listed_shown_fixed_and_replayed_once(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    text = DIVIDE.format(name=unique, brokers=connection.brokers)
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    fill(connection, f"{unique}.in", ['{"list": [5, 0, 2, "x"]}', '{"list": [1]}', '{"list": 1}'])
    progress = run(text)
    assert (progress.records, progress.rows) == (3, 3)

    first, second, third = ids(file)
    assert [first, second, third] == [
        f"{unique}.in-0-0.1",
        f"{unique}.in-0-0.3",
        f"{unique}.in-0-2",
    ]
    shown = json.loads(penstock("deadletters", "show", "--json", file, first).stdout)
    assert (shown["stage"], shown["error_type"]) == ("step", "CORE:EXPRESSION")
    assert shown["value"] == '{"list": [5, 0, 2, "x"]}'
    assert shown["headers"]["penstock.flow.step"] == "divide"
    assert penstock("deadletters", "show", "--value", file, second).stdout == "x"

    result = penstock("deadletters", "replay", "--yes", file, first, "--value", "4")
    assert result.stderr == "1 dead letter replayed: 1 message written, 0 failed again\n"
    again = penstock("deadletters", "replay", "--yes", file, second, "--value", "0", code=1)
    assert "0 messages written, 1 failed again" in again.stderr
    assert ids(file) == [third, second]
    penstock("deadletters", "drop", "--yes", file, second)
    assert ids(file) == [third]
    wrong = penstock("deadletters", "replay", "--yes", file, third, "--from-step", "dvide", code=2)
    assert "there is no step 'dvide'" in wrong.stderr

    found = sorted(
        json.loads(record.value)["result"] for record in read_all(connection, f"{unique}.out")
    )
    assert found == [2, 2.5, 5, 10]
    assert {json.loads(record.value)["of"] for record in read_all(connection, f"{unique}.out")} == {
        0,
        1,
    }


def test_a_record_that_fails_in_a_later_run_is_another_letter(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    text = DIVIDE.format(name=unique, brokers=connection.brokers)
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    fill(connection, f"{unique}.in", ['{"list": [0]}'])
    run(text)
    penstock("deadletters", "drop", "--yes", file, "--all")
    with Admin(connection) as admin:
        admin.reset(admin.plan_reset(unique, "earliest"))
    run(text)

    assert ids(file) == [f"{unique}.in-0-0.0"]


def test_a_replay_that_is_killed_is_finished_by_the_next_one(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    bodies: list[bytes] = []
    victim: list[int] = []

    def respond(seen: Seen) -> Answer:
        bodies.append(seen.body)
        if victim and len(bodies) > 22:
            os.kill(victim.pop(), signal.SIGKILL)
        return Answer(b"", 422 if len(bodies) <= 20 else 200)

    with OrdersApi(respond) as api:
        text = POST.format(name=unique, brokers=connection.brokers, url=api.url)
        file = tmp_path / "flow.yaml"
        file.write_text(text)
        fill(connection, f"{unique}.in", [b"%d" % n for n in range(20)])
        run(text)
        assert len(ids(file)) == 20
        command = [
            sys.executable,
            "-m",
            "penstock",
            "deadletters",
            "replay",
            "--yes",
            file,
            "--all",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        victim.append(process.pid)
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        before = len(bodies)
        assert ids(file) == [], "they belong to the replay that was begun"

        result = penstock("deadletters", "replay", "--yes", file, "--all")
        after = len(bodies)
        assert "0 dead letters replayed" in result.stderr
        penstock("deadletters", "replay", "--yes", file, "--all")

    assert Counter(bodies[before:]).keys() == {b"%d" % n for n in range(20)}, "nothing is lost"
    assert (before, after, len(bodies)) == (23, 43, 43), "3 twice, and nothing by a third replay"


def test_a_system_that_is_away_leaves_the_letters_as_they_were(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    with OrdersApi(lambda _: Answer(b"", 422)) as api:
        text = POST.format(name=unique, brokers=connection.brokers, url=api.url)
        file = tmp_path / "flow.yaml"
        file.write_text(text)
        fill(connection, f"{unique}.in", [b"1", b"2"])
        run(text)
        api.stop()
        letters = ids(file)
        result = penstock("deadletters", "replay", "--yes", file, "--all", code=4)
        assert "the flow waits at post: HTTP:UNAVAILABLE" in result.stderr
        assert ids(file) == letters
        api.respond = lambda _: Answer(b"", 200)
        api.start()
        penstock("deadletters", "replay", "--yes", file, "--all")
        assert ids(file) == []


def test_a_letter_that_is_larger_than_its_topic_takes_does_not_stop_the_flow(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    text = f"""\
name: {unique}
connection: {{addresses: "{connection.brokers}"}}
trigger: {{kafka: {{topics: {unique}.in, metadata: [key], advanced: {{initial_offset: oldest}}}}}}
steps:
  - set: {{variable: {{copy: "text(payload)"}}}}
  - id: check
    filter: "1 / if(length(payload) > 10, 0, 1) = 1"
  - publish: {{kafka: {{topic: "{unique}.out", key: "${{attribute.key}}"}}}}
"""
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    large = b"x" * 900_000
    fill(connection, f"{unique}.in", [large, b"y" * 20, b"z"], key=lambda n: b"key-%d" % n)

    progress = run(text)

    assert (progress.records, progress.failed) == (3, 0)
    shown = [
        json.loads(penstock("deadletters", "show", "--json", file, each).stdout)
        for each in ids(file)
    ]
    assert sorted(len(each["value"]) for each in shown) == [20, 900_000]
    headers = {len(each["value"]): each["headers"].keys() for each in shown}
    assert "penstock.flow.message" in headers[20]
    assert "penstock.flow.message" not in headers[900_000]
    (huge,) = [each["id"] for each in shown if len(each["value"]) == 900_000]
    penstock("deadletters", "replay", "--yes", file, huge, "--value", "short")
    found = {record.key: record.value for record in read_all(connection, f"{unique}.out")}
    assert found == {b"key-2": b"z", b"key-0": b"short"}
