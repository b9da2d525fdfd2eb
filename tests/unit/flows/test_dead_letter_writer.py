"""Dead letters of flows on their way to Kafka: every record has one, in the form that Kafka takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.flows.flow_cases import flow_of

from penstock.config import Connection
from penstock.engine.dead_letters.letter import DeadLetter, from_record
from penstock.errors import TransientError
from penstock.flows import CompiledFlow, Message
from penstock.flows.dead_letters import MESSAGE, Forms, definition_of, letters_of
from penstock.flows.error_codes import Fault
from penstock.flows.live import dead_letter_writer
from penstock.flows.live.dead_letter_writer import DeadLetterWriter
from penstock.flows.running.systems import PublishRequest
from penstock.flows.testing import canned_systems
from penstock.record import Record

FLOW = flow_of({"join": {"count": 3}}, {"id": "check", "validate": {"type": "object"}})
DEEP = b"[" * 500 + b"]" * 500


class Topic:
    """Takes records, and none of a batch that has one that it refuses."""

    def __init__(self, *_: Any) -> None:
        self.letters: list[DeadLetter] = []
        self.refuses: Callable[[DeadLetter], bool] = lambda _: False

    def publish(self, _: Any, requests: Sequence[PublishRequest]) -> list[Any]:
        read = [self._read(each) for each in requests]
        if any(map(self.refuses, read)):
            return [Fault("KAFKA:REFUSED", "too large")] * len(read)
        self.letters += read
        return [{}] * len(read)

    def _read(self, request: PublishRequest) -> DeadLetter:
        fields = {name: request.fields[name] for name in ("key", "value", "headers")}
        found = from_record(Record.of("t", 0, 0, **fields))
        assert found
        return found

    @property
    def ids(self) -> list[str]:
        return sorted(letter.id for letter in self.letters)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic()
    monkeypatch.setattr(dead_letter_writer, "KafkaPublisher", lambda _: topic)
    return topic


def write(forms: Sequence[Forms]) -> None:
    DeadLetterWriter(Connection(brokers="nowhere"), "t").write(forms)


def letters(*values: bytes) -> list[Forms]:
    """Return the letters of a run of the flow, which joins three messages."""
    failed = CompiledFlow(FLOW).run([Message(each) for each in values], canned_systems())

    def record(number: int) -> DeadLetter:
        given: dict[str, Any] = {"topic": "orders", "partition": 0, "offset": number}
        return DeadLetter(stage="step", value=values[number], **given)

    return letters_of(failed.dead_letters, record, definition_of(FLOW))


def has_message(letter: DeadLetter) -> bool:
    return MESSAGE in dict(letter.headers)


def test_each_record_of_a_message_that_json_cannot_have_gets_a_letter(topic: Topic) -> None:
    write(letters(b'{"n":1}', DEEP, b'{"n":3}', b"4", b"5", b"6"))

    assert topic.ids == ["orders-0-0", "orders-0-1", "orders-0-2", "orders-0-3"]
    assert [letter.value for letter in topic.letters if not has_message(letter)] == [
        b'{"n":1}', DEEP, b'{"n":3}',
    ]  # fmt: skip
    assert {letter.error_type for letter in topic.letters} == {"CORE:VALIDATION"}


def test_a_letter_that_is_refused_alone_too_is_written_for_each_of_its_records(
    topic: Topic,
) -> None:
    topic.refuses = lambda letter: has_message(letter) and letter.offset == 0

    write(letters(b"1", b"2", b"3", b"4", b"5", b"6"))

    assert topic.ids == ["orders-0-0", "orders-0-1", "orders-0-2", "orders-0-3"]
    assert [letter.offset for letter in topic.letters if has_message(letter)] == [3]


@pytest.mark.parametrize("second", [b"2", DEEP])
def test_a_record_that_is_refused_in_every_form_is_an_error(topic: Topic, second: bytes) -> None:
    topic.refuses = lambda letter: letter.offset == 0

    with pytest.raises(TransientError, match="dead letters cannot be written to 't'"):
        write(letters(b"1", second, b"3"))
