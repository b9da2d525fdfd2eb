"""Rows as JMS messages, without a broker: one that cannot be a message is refused by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.sinks.jms.jms_messages import Messages
from penstock.sinks.jms.jms_sink import JmsSink
from penstock.sinks.messages import Refusal

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("kind", "good", "bad", "reason"),
    [
        ("stream", b"[1]", DEEP, "nested too deeply"),
        ("map", b'{"a":1}', b'{"a":%s}' % DEEP, "nested too deeply"),
        ("map", b'{"a":1}', b"[1]", "a map message is made of a JSON object"),
        ("map", b'{"a":1}', b'{"a":%d}' % 2**64, "has more than 64 bits"),
        ("text", b"a", b"\xff", "can't decode byte 0xff"),
        ("stream", b"[]", b'["\\ud83d"]', "surrogates not allowed"),
    ],
)
def test_a_row_that_cannot_be_a_message_is_refused_alone(
    kind: str, good: bytes, bad: bytes, reason: str
) -> None:
    sink = JmsSink(url="amqp://localhost", queue="q", message=kind, value="value")
    rows = pa.record_batch({"value": pa.array([good, bad, good], pa.binary())})
    first, second, third = Messages(sink).of(rows)
    assert isinstance(second, Refusal)
    assert second.row == 1
    assert reason in second.error
    assert [each[0] for each in (first, third)] == ["q", "q"]
