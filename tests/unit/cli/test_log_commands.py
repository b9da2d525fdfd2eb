"""`penstock logs` and `penstock events --tail`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

from penstock.cli.log_commands import log_line
from penstock.control.store.logs import LogLine
from penstock.control.store.rows import Kind

SPEC = "name: {}\nsource: {{kafka: t}}\nsink: discard\n"


@pytest.fixture
def logged(server: PenstockServer) -> PenstockServer:
    """A server with a deployment, and lines of it and of a worker."""
    server.store.deployments.put("a", Kind.PIPELINE, SPEC.format("a"), by="ann")
    add(server, LogLine("a", "info", "old", {}, 7200.0))
    add(server, LogLine("a", "warning", "failed", {"reason": "a b", "batch": 7}))
    add(server, LogLine("a", "info", "new"), LogLine("", "info", "own"))
    return server


def add(server: PenstockServer, *lines: LogLine) -> None:
    server.store.logs.add("w1", lines)


def shown(text: str) -> list[str]:
    """Return lines without their times."""
    return [line.split("  ", 1)[1] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (["a"], ["old", "failed", "new"]),
        (["a", "--tail", "2"], ["failed", "new"]),
        (["a", "--tail", "0"], []),
        (["a", "--level", "warning"], ["failed"]),
        (["a", "--since", "10m"], ["failed", "new"]),
        (["a", "--since", "10m", "--tail", "1"], ["new"]),
        (["--worker", "w1"], ["own"]),
    ],
)
def test_logs_are_selected(
    args: list[str], lines: list[str], logged: PenstockServer, command: Command
) -> None:
    ended = command("logs", *args, "-o", "json")

    assert (ended.code, ended.err) == (0, "")
    assert [json.loads(line)["event"] for line in ended.out.splitlines()] == lines


def test_a_line_is_for_people(logged: PenstockServer, command: Command) -> None:
    ended = command("logs", "a")

    assert shown(ended.out)[1] == 'warning   failed  reason="a b"  batch=7'


def test_no_lines_are_a_message(logged: PenstockServer, command: Command) -> None:
    ended = command("logs", "a", "--level", "critical")

    assert (ended.code, ended.out, ended.err) == (0, "", "there are no such lines\n")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ([], 2, "give the name of a deployment, or --worker with an id; neither was given"),
        (["a", "--worker", "w"], 2, "given: 'a' and 'w'"),
        (["b"], 2, "there is no deployment 'b'"),
        (["b", "--tail", "0"], 2, "there is no deployment 'b'"),
        (["b", "-f"], 2, "there is no deployment 'b'"),
        (["--worker", "w2"], 2, "there is no worker 'w2'"),
        (["a/../../users"], 2, "there is no"),
        (["a", "--level", "warn"], 2, "level is 'warn'; did you mean 'warning'"),
        (["a", "--since", "soon"], 2, "since is 'soon'; give a duration"),
        (["a", "--tail", "-1"], 2, "--tail"),
        (["a", "--tail", "1001"], 2, "--tail"),
        (["a", "-o", "xml"], 2, "--output is 'xml'; allowed: json, text"),
        (["a", "--server", "http://127.0.0.1:9"], 4, "http://127.0.0.1:9"),
    ],
)
def test_wrong_commands(
    args: list[str], code: int, text: str, logged: PenstockServer, command: Command
) -> None:
    ended = command("logs", *args)

    assert ended.code == code, ended
    assert text in ended.err
    assert "Traceback" not in ended.err


def test_hostile_lines_do_not_reach_the_terminal() -> None:
    line: dict[str, Any] = {
        "at": 1.0, "level": "info", "event": "a\x1b[31m\nb", "number": 1,
        "fields": {"k\x07": "v\x9b1m", "exception": "one\n\x1b]0;x\x07two"},
    }  # fmt: skip
    text = log_line(line)

    assert text.splitlines()[1:] == ["    one", "    \\u001b]0;x\\u0007two"]
    assert all(each.isprintable() for each in text.splitlines())


def test_following_survives_a_restart_of_the_server_and_ends_with_ctrl_c(
    logged: PenstockServer,
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "logs", "a", "-f", "--tail", "1", "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    try:
        assert process.stdout
        events = [json.loads(process.stdout.readline())["event"]]
        add(logged, LogLine("a", "info", "second"))
        events.append(json.loads(process.stdout.readline())["event"])
        logged.stop()
        add(logged, LogLine("a", "info", "while it was away"))
        logged.start()
        events.append(json.loads(process.stdout.readline())["event"])
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()

    assert events == ["new", "second", "while it was away"]
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(("args", "count"), [(["--tail", "2"], 2), (["-n", "1"], 1), ([], 5)])
def test_the_newest_events(
    args: list[str], count: int, logged: PenstockServer, command: Command
) -> None:
    for n in range(4):
        logged.store.events.add("a", "note", f"{n}")
    ended = command("events", "a", *args, "--json")

    texts = [json.loads(line)["text"] for line in ended.out.splitlines()]
    assert texts == ["created by ann", "0", "1", "2", "3"][-count:]
