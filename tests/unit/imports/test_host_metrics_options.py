"""Wrong options of the source host_metrics are refused, with what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kinds": []}, "at least 1 item"),
    ({"kinds": ["cpu", "load", "cpu"]}, "cpu, load, cpu: a kind is named twice"),
    (
        {"kinds": ["gpu"]},
        "given 'gpu'; input should be 'cpu', 'memory', 'disk', 'filesystem', 'net",
    ),
    ({"interval": 0}, "interval: given 0.0; input should be greater than 0"),
    ({"interval": "often"}, "given 'often'; a duration is a number with ms, s, m, h or d"),
    ({"top": 0}, "top: given 0; input should be greater than or equal to 1"),
    ({"host": 5}, "host: given 5; input should be a valid string"),
    ({"topic": "m.{table}"}, "cannot have {table} in its name here; allowed: {host}, {kind}"),
    ({"topic": "m {kind}"}, "cannot be a topic"),
    (
        {"value_format": "string"},
        "has several values, and 'string' is for one; allowed: json, avro",
    ),
    ({"value_format": "jsn"}, "unknown format 'jsn'; did you mean 'json'?"),
    ({"value_format": {"avro": {}}}, "value_format.avro.registry: is required"),
    ({"poll": 0}, "poll: given 0.0; input should be greater than 0"),
    ({"tasks_max": 0}, "tasks_max: given 0; input should be greater than or equal to 1"),
    ({"max_records": 0}, "max_records: given 0; input should be greater than or equal to 1"),
    ({"kind": ["cpu"]}, "kind: is not an option here; did you mean 'kinds'?"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"host_metrics": given}, sink={"kafka": "t"})
    assert message in str(caught.value)


def test_at_most_once_is_refused_with_the_reason() -> None:
    with pytest.raises(DefinitionError, match="a position cannot be written before its records"):
        Pipeline(
            name="p", source={"host_metrics": {}}, sink={"kafka": "t"}, delivery="at-most-once"
        )
