"""Files behind a URI whose store replaces a file in two acts: a reader in between still finds it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from penstock.pipeline import hadoop
from penstock.pipeline.hadoop import DRAFT, Hadoop


class Looks:
    """A file with its draft, which take turns while a process looks."""

    def __init__(self, *states: dict[str, str]) -> None:
        self.states = list(states)

    def text(self, location: str) -> str | None:
        return self._now().get(location)

    def exists(self, location: str) -> bool:
        return location in self._now()

    def _now(self) -> dict[str, str]:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def store(looks: Looks) -> Any:
    made: Any = object.__new__(Hadoop)
    made._text = looks.text
    made._fs = SimpleNamespace(exists=looks.exists)
    made._path = lambda location: location
    return made


OLD, NEW = {"f": '{"n":1}'}, {"f": '{"n":2}'}
REMOVED = {f"f{DRAFT}": '{"n":2}'}


@pytest.mark.parametrize("states", [(OLD,), (NEW,), (REMOVED,), (REMOVED, NEW), ({}, {}, NEW)])
def test_a_file_that_is_being_replaced_is_always_found(states: tuple[dict[str, str], ...]) -> None:
    assert store(Looks(*states)).read("f") in {*OLD.values(), *NEW.values()}
    assert store(Looks(*states)).exists("f")


def test_a_file_that_is_not_there_is_not_found() -> None:
    assert store(Looks({})).read("f") is None
    assert not store(Looks({})).exists("f")


def test_a_draft_that_is_not_complete_does_not_count() -> None:
    assert store(Looks({f"f{DRAFT}": '{"n":'})).read("f") is None


class WrongSumError(Py4JJavaError):
    def __init__(self) -> None:
        Exception.__init__(self)


def test_a_file_whose_checksum_is_being_replaced_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hadoop, "java_class", lambda _: "ChecksumException")
    monkeypatch.setattr(hadoop, "_BETWEEN_LOOKS", 0)
    answers: list[Any] = [WrongSumError(), WrongSumError(), "text"]

    def look(_location: str) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    made: Any = object.__new__(Hadoop)
    made._content = look
    assert made.read("f") == "text"

    monkeypatch.setattr(hadoop, "_REPLACED_WITHIN", -1)
    answers += [WrongSumError()]
    with pytest.raises(WrongSumError):
        made.read("f")
