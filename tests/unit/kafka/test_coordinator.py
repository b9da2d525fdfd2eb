"""The child that asks for us may die; the caller gets an answer or an error, and never waits forever."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from penstock.config import Connection
from penstock.error_frame import to_document
from penstock.errors import BrokerUnavailableError, TransientError
from penstock.kafka.admin.admin_model import GroupDescription, MemberInfo
from penstock.kafka.admin.coordinator import Coordinator

DESCRIPTION = GroupDescription(
    "stable", "classic", "range", False, (MemberInfo("m", "c", "/h", (("t", 0),)),)
)


def played(monkeypatch: pytest.MonkeyPatch, *scripts: str) -> list[str]:
    """Let children run these scripts, one after the other; gives those that are left."""
    left = list(scripts)
    real = subprocess.Popen

    def start(_command: object, **how: object) -> object:
        return real([sys.executable, "-c", left.pop(0)], **how)

    monkeypatch.setattr("penstock.kafka.admin.coordinator.subprocess.Popen", start)
    return left


def coordinator() -> Coordinator:
    secret = {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "hush"}
    settings = {"bootstrap.servers": "h:1", "security.protocol": "sasl_plaintext", **secret}
    return Coordinator(Connection.from_config(settings), 1)


def answering(answer: object) -> str:
    """A child that gives this answer to every question."""
    text = orjson.dumps(answer).decode()
    first = "import sys; sys.stdin.readline()"
    return f"{first}\nfor question in sys.stdin: print({text!r}, flush=True)"


DYING = "import os, sys; sys.stdin.readline(); sys.stdin.readline(); os.abort()"


def test_a_description_is_returned_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"error": to_document(TransientError("in a moment"))}
    played(monkeypatch, answering({"g": DESCRIPTION, "gone": None, "busy": error}))
    reported = coordinator().describe(["g", "gone", "busy"])
    assert (reported["g"], reported["gone"]) == (DESCRIPTION, None)
    assert type(reported["busy"]) is TransientError
    assert str(reported["busy"]) == "in a moment"


def test_a_question_is_put_once_more_when_the_child_dies_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = played(monkeypatch, DYING, answering({"g": DESCRIPTION}))
    assert coordinator().describe(["g"]) == {"g": DESCRIPTION}
    assert left == []


def test_a_child_that_dies_twice_is_an_error_and_the_next_question_gets_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played(monkeypatch, DYING, DYING, answering({"g": None}))
    asking = coordinator()
    with pytest.raises(
        BrokerUnavailableError, match="group g: a broker of h:1 went away"
    ) as caught:
        asking.delete("g")
    assert "hush" not in str(caught.value)
    assert asking.describe(["g"]) == {"g": None}


def test_a_child_that_saw_a_broker_go_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    away = {"error": to_document(BrokerUnavailableError("no broker answers"))}
    left = played(monkeypatch, answering({"g": away}), answering({"g": DESCRIPTION}))
    asking = coordinator()
    assert type(asking.describe(["g"])["g"]) is BrokerUnavailableError
    assert asking.describe(["g"]) == {"g": DESCRIPTION}
    assert left == []


def test_the_password_is_in_no_list_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    real = subprocess.Popen

    def start(command: list[str], **how: object) -> object:
        seen.extend(command)
        return real([sys.executable, "-c", answering({"g": None})], **how)

    monkeypatch.setattr("penstock.kafka.admin.coordinator.subprocess.Popen", start)
    coordinator().describe(["g"])
    assert "hush" not in str(seen)


def test_closing_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, answering({"g": None}))
    asking = coordinator()
    asking.describe(["g"])
    child = asking._child
    assert child is not None
    assert child.poll() is None
    asking.close()
    assert child.poll() == 0
