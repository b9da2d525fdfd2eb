"""Definitions come back as they were: connections, secrets, components, functions."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from penstock import Connection
from penstock.control.job_spec import pipeline_of
from penstock.control.stored_functions import deserialize, serialize
from penstock.errors import ConfigError
from penstock.sinks.database.database_sink import DatabaseSink
from penstock.sinks.memory import MemorySink


def parse(value: str) -> Any:
    return {"n": int(value)}


def again(value: Any) -> Any:
    return deserialize(json.loads(json.dumps(serialize(value))), trusted=True)


def definition(**more: Any) -> dict[str, Any]:
    given = {"name": "p", "source": {"kafka": "t"}, "sink": {"memory": "m"}}
    return given | {"decode": {"python": {"function": parse, "schema": "n int"}}} | more


def test_a_function_of_a_module_is_stored_by_its_path() -> None:
    data = serialize(parse)
    assert data["$function"].endswith("test_stored_functions:parse")
    assert "value" not in data or data["value"]  # a test module may have no import path
    assert serialize(json.loads) == {
        "$function": "json:loads",
        "folders": serialize(json.loads)["folders"],
    }
    assert again(json.loads).load() is json.loads


def test_a_function_without_a_path_is_stored_by_value() -> None:
    word = "kept"
    found = again(lambda value: value + word)
    assert found.load()("is ") == "is kept"


def test_a_function_that_holds_a_lock_is_refused_with_the_reason() -> None:
    lock = threading.Lock()
    with pytest.raises(ConfigError, match=r"cannot be stored for the next start: .*lock"):
        serialize(lambda value: (lock, value))


def test_a_function_of_another_python_is_refused() -> None:
    data = serialize(lambda value: value) | {"python": "2.7"}
    with pytest.raises(ConfigError, match=r"was stored by Python 2\.7"):
        deserialize(data, trusted=True)


def test_secrets_come_back_and_are_not_taken_for_references() -> None:
    connection = Connection.from_config(
        {
            "bootstrap.servers": "db:9092",
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "me",
            "sasl.password": "a${env:HOME}b",
        }
    )
    sink = DatabaseSink(url="postgresql://me@db/shop", password="p${env:HOME}", table="t")
    pipeline = pipeline_of(serialize(definition(connection=connection, sink=sink)), trusted=True)

    assert pipeline.connection == connection
    assert pipeline.sink == sink


def test_components_come_back_with_their_options() -> None:
    sink = MemorySink(table="m", mode="upsert", key=["n"])
    pipeline = pipeline_of(
        serialize(definition(sink=sink, steps=[{"sql": "SELECT n FROM rows"}])), trusted=True
    )
    assert pipeline.sink == sink
    assert pipeline.decode.function.load()("5") == {"n": 5}
