"""Configurations as definitions of pipelines: what reads, what is between, what happens to errors."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from penstock.connect.config_definition import Key
from penstock.connect.connector_class import Catalog, ConnectorClass, Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported
from penstock.connect.connectors import CATALOG
from penstock.connect.translation import definition_of
from penstock.connect.validation import validate
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline

SOURCE = {"connector.class": "FileStreamSource", "file": "/data/in", "topic": "a", "name": "in"}
SINK = {"connector.class": "FileStreamSink", "file": "/data/out", "topics": "a", "name": "out"}
ROUTE = {
    "transforms": "r",
    "transforms.r.type": "RegexRouter",
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "$1-x",
}
HOIST = {
    "transforms": "h",
    "transforms.h.type": "HoistField$Value",
    "transforms.h.field": "v",
}


class TablesSource(ConnectorClass):
    """Tables, whose import writes what any converter does."""

    names: ClassVar[tuple[str, ...]] = ("example.TablesSource",)
    kind: ClassVar[Kind] = "source"
    keys: ClassVar[tuple[Key, ...]] = (Key("topic"),)

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return any format."""
        return Imported.any_format()

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the tables of a file."""
        tables = {"url": "sqlite:///d.db", "tables": "*", "mode": "bulk", "topic": config["topic"]}
        return {"source": {"database": tables}}


CLASSES = Catalog((*CATALOG.classes, TablesSource))
TABLES = {"connector.class": "TablesSource", "topic": "a", "name": "in"}


def translated(given: dict[str, str], **worker: str) -> Pipeline:
    name = given["name"]
    more = {"worker": worker} if worker else {}
    return Pipeline(**definition_of(name, name, given, CLASSES, **more))


def test_lines_as_text_are_an_import_alone() -> None:
    made = translated(SOURCE)
    assert made.only_imports
    assert (made.source.name, made.sink.topic) == ("files", "a")  # type: ignore[attr-defined]


@pytest.mark.parametrize("more", [HOIST, ROUTE, {"value.converter": "JsonConverter"}])
def test_with_a_transform_or_another_converter_a_topic_is_between(more: dict[str, str]) -> None:
    made = translated({**SOURCE, **more})
    assert not made.only_imports
    assert made.imported().source.named_topics() == ["in.in"]
    assert made.delivery.value == "exactly-once"
    expected = "a-x" if more is ROUTE else "a"
    assert made.sink.topic == expected  # type: ignore[attr-defined]
    assert made.steps[0].topic == "a"  # type: ignore[attr-defined]


def test_the_converters_of_a_worker_are_those_of_connectors_that_name_none() -> None:
    json = {"key.converter": "StringConverter", "value.converter": "JsonConverter"}
    made = translated(SINK, **json)
    assert made.decode.value.form == "json"  # type: ignore[attr-defined]
    assert translated(SINK).decode.value.form == "string"  # type: ignore[attr-defined]


def test_an_import_of_any_format_writes_what_the_converters_do() -> None:
    json = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    alone = translated({**TABLES, **json})
    assert alone.only_imports
    assert alone.source.value_format.connect.schemas is False  # type: ignore[attr-defined]
    routed: Any = translated({**TABLES, **ROUTE, **json, "topic": "t-{table}"})
    assert routed.source.topic == "in.in.t-{table}"
    assert routed.source.topic_pattern() == r"in\.in\.t\-.+"
    assert (routed.decode.value.form, routed.steps[0].topic_prefix) == ("bytes", "in.in.")
    hoisted: Any = translated({**TABLES, **HOIST, **json})
    assert (hoisted.decode.value.form, hoisted.decode.value.schemas) == ("json", True)
    assert hoisted.steps[0].shape.value.schemas is False


def test_a_class_that_was_removed_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"which name matches com\.acme\.Gone"):
        translated({**SINK, "connector.class": "com.acme.Gone"})


def test_transforms_of_values_need_one_schema() -> None:
    several = {**TABLES, "topic": "t-{table}"}
    (error,) = validate(CLASSES, {**several, **HOIST}).errors
    assert error.startswith(
        "Invalid value h for configuration transforms: this connector reads into"
    )
    assert validate(CLASSES, {**several, **ROUTE}).errors == []


@pytest.mark.parametrize(
    ("more", "restart"),
    [
        ({}, (0, 5.0)),
        ({"errors.tolerance": "all"}, (5, 5.0)),
        ({"errors.retry.timeout": "6000"}, (3, 5.0)),
        ({"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "2000"}, (1_000_000, 2.0)),
    ],
)
def test_a_failed_batch_is_tried_again_as_long_as_errors_are_retried(
    more: dict[str, str], restart: tuple[int, float]
) -> None:
    made = translated({**SINK, **more})
    assert (made.restart.limit, made.restart.longest) == restart


def test_a_queue_is_for_sinks_that_tolerate_errors() -> None:
    queue = {"errors.deadletterqueue.topic.name": "q"}
    letters: Any = translated({**SINK, **queue}).dead_letters
    assert (letters.topic, letters.stores_nothing) == (None, True)
    letters = translated({**SINK, **queue, **HOIST, "errors.tolerance": "all"}).dead_letters
    assert (letters.topic, letters.replication) == ("q", None)
    assert letters.classes.transforms == ("org.apache.kafka.connect.transforms.HoistField$Value",)


def test_where_to_start_is_that_of_the_consumer() -> None:
    latest: Any = translated({**SINK, "consumer.override.auto.offset.reset": "latest"})
    assert (latest.source.start, latest.group) == ("latest", "connect-out")
