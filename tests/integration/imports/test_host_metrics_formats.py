"""Measurements in the formats of rows."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Connection, Pipeline
from penstock.embedded import SchemaRegistry
from penstock.errors import ConfigError, DefinitionError
from penstock.imports.host_metrics import HostMetricsImport
from penstock.imports.host_metrics.measured_values import rows_of
from penstock.imports.host_metrics.measuring import KINDS, measure
from penstock.imports.part_task import Errand, run
from penstock.imports.positions import Known, create_topic
from penstock.kafka import Admin
from penstock.testing import read_all


def test_measurements_as_avro(
    connection: Connection, unique: str, schema_registry: SchemaRegistry
) -> None:
    create_topic(connection)
    source = HostMetricsImport(
        kinds=["load", "memory"],
        host="here",
        topic=unique + ".{kind}",
        value_format={"avro": {"registry": schema_registry.url}},
    )
    for part in source.system().pending({}):
        topic = source.topic_of(part)
        with Admin(connection) as admin:
            admin.create_topic(topic, 1)
        errand = Errand(unique, 0, part, connection, topic, f"{unique}.dead", Known(), 100)
        assert run(errand, 0).error is None
        found = read_all(connection, topic)
        assert len(found) == len(measure(part.names["kind"], 1, "here"))
        # Each begins with the id of a registered schema, and has the host as a text.
        assert {record.value[:1] for record in found} == {b"\x00"}
        assert all(b"here" in record.value for record in found)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_rows_of_one_form(kind: str) -> None:
    measured = measure(kind, 5, "here")
    if measured:
        assert rows_of(measured).type == rows_of(measure(kind, 5, "here")).type
        assert len(rows_of(measured)) == len(measured)


@pytest.mark.parametrize("given", ["int", "string", "uuid", "xml", {"avro": {}}])
def test_formats_that_cannot_be_are_refused(given: Any) -> None:
    with pytest.raises(DefinitionError, match=r"value_format"):
        Pipeline(name="p", source={"host_metrics": {"value_format": given}}, sink={"kafka": "t"})


def test_registered_kinds_need_topics_of_their_own() -> None:
    source = HostMetricsImport(topic="t", value_format={"avro": {"registry": "http://localhost:1"}})
    with pytest.raises(ConfigError, match=r"give a topic for each, as in 'metrics.\{kind\}'"):
        source.system()
