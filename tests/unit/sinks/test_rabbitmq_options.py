"""Wrong options of the sink rabbitmq are refused, with what was given, what is allowed and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.imports.test_rabbitmq_options import WRONG_CONNECTION

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline
from penstock.sinks.rabbitmq.rabbitmq_sink import RabbitMqSink

GOOD = {"url": "amqp://app@mq", "routing_key": "orders"}
WRONG: list[tuple[dict[str, Any], str]] = [
    *WRONG_CONNECTION,
    ({"routing_key": None}, "where do messages go? Give 'routing_key' (a queue), 'routing_key_col"),
    ({"routing_key": ""}, "where do messages go?"),
    ({"routing_key": "k" * 256}, "has 256 bytes, and AMQP allows 255"),
    ({"exchange": "e" * 256}, "has 256 bytes, and AMQP allows 255"),
    ({"content_type": "ä" * 200}, "has 400 bytes, and AMQP allows 255"),
    ({"routing_key_column": ""}, "at least 1 character"),
    ({"mandatory": "perhaps"}, "given 'perhaps'"),
    ({"persistent": 7}, "given 7"),
    ({"priority": 256}, "less than or equal to 255"),
    ({"priority": -1}, "greater than or equal to 0"),
    ({"expiration": "soon"}, "given 'soon'; a duration is a number with ms, s, m, h or d"),
    ({"expiration": -1}, "greater than or equal to 0"),
    ({"message_id": "id"}, "did you mean 'message_id_column'?"),
    ({"value_format": "xml"}, "unknown format 'xml'"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"kafka": "t"}, sink={"rabbitmq": {**GOOD, **given}})
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_exactly_once_is_refused_with_the_reason() -> None:
    with pytest.raises(DefinitionError, match="a batch that is repeated is published again"):
        Pipeline(name="p", source={"kafka": "t"}, sink={"rabbitmq": GOOD}, delivery="exactly-once")


def test_properties_that_all_messages_have() -> None:
    sink = RabbitMqSink(**GOOD, priority=3, expiration="1.5s", app_id="penstock")
    assert sink.properties() == {
        "content_type": "application/json",
        "delivery_mode": 2,
        "priority": 3,
        "expiration": "1500",
        "app_id": "penstock",
    }
    assert "content_type" not in RabbitMqSink(**GOOD, value="body").properties()
    assert RabbitMqSink(url="amqp://mq", exchange="logs").fixed_routing_key == ""
    column = RabbitMqSink(url="amqp://mq", exchange="logs", routing_key_column="k")
    assert (column.fixed_routing_key, column.columns()) == (None, {"routing_key": "k"})
