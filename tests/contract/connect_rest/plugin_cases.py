"""Plugins, their keys, the check of configurations, and levels of loggers."""

from __future__ import annotations

from typing import Any

from tests.contract.connect_rest.rest_case import Cases
from tests.contract.connect_rest.setup_cases import FULL, SINK, SOURCE

plugins = Cases("plugins")

_FILES = {"source": "FileStreamSourceConnector", "sink": "FileStreamSinkConnector"}


def files(body: Any) -> Any:
    """Return the file connectors of a list of plugins."""
    return sorted(each.items() for each in body if each["class"].endswith(tuple(_FILES.values())))


def transforms(body: Any) -> Any:
    """Return the plugins of Apache Kafka that are not connectors."""
    kinds = ("transformation", "predicate", "converter", "header_converter")
    found = [tuple(each.values()) for each in body if each["type"] in kinds]
    return sorted(each for each in found if each[0].startswith("org.apache.kafka"))


for query in (
    "",
    "?connectorsOnly=true",
    "?connectorsOnly=false",
    "?connectorsOnly=maybe",
    "?connectorsOnly=",
):
    plugins.add("GET", f"/connector-plugins{query}", view=files)
plugins.add("GET", "/connector-plugins?connectorsOnly=false", note="others", view=transforms)
for name in ("FileStreamSource", "FileStreamSinkConnector", FULL):
    plugins.add("GET", f"/connector-plugins/{name}/config")

_LIKE = "/connector-plugins/FileStreamS{}/config/validate"
SINKS, SOURCES = _LIKE.format("ink"), _LIKE.format("ource")
for note, path, config in (
    ("good sink", SINKS, SINK),
    ("good source", SOURCES, SOURCE),
    ("with a name", SINKS, {**SINK, "name": "a"}),
    ("full class", SINKS, {**SINK, "connector.class": FULL, "name": "a"}),
    ("by full name", f"/connector-plugins/{FULL}/config/validate", {**SINK, "name": "a"}),
    ("empty", SINKS, {}),
    ("class alone", SOURCES, {"connector.class": "FileStreamSource"}),
    ("numbers", SINKS, {**SINK, "name": "a", "tasks.max": 3, "errors.log.enable": True}),
    ("nulls", SINKS, {**SINK, "name": None, "tasks.max": None}),
    ("empty name", SINKS, {**SINK, "name": ""}),
    ("name with a bell", SINKS, {**SINK, "name": "a\x07"}),
    ("tasks.max 0", SINKS, {**SINK, "name": "a", "tasks.max": "0"}),
    ("tasks.max x", SINKS, {**SINK, "name": "a", "tasks.max": "x"}),
    ("tasks.max empty", SINKS, {**SINK, "name": "a", "tasks.max": ""}),
    ("tasks.max large", SINKS, {**SINK, "name": "a", "tasks.max": "99999999999"}),
    ("boolean", SINKS, {**SINK, "name": "a", "errors.log.enable": "perhaps"}),
    ("long", SINKS, {**SINK, "name": "a", "errors.retry.timeout": "soon"}),
    (
        "short",
        SINKS,
        {**SINK, "name": "a", "errors.deadletterqueue.topic.replication.factor": "70000"},
    ),
    ("enum", SINKS, {**SINK, "name": "a", "errors.tolerance": "maybe"}),
    ("reload", SINKS, {**SINK, "name": "a", "config.action.reload": "never"}),
    ("no topics", SINKS, {**SINK, "name": "a", "topics": ""}),
    ("both topics", SINKS, {**SINK, "name": "a", "topics.regex": "a"}),
    ("bad pattern", SINKS, {**SINK, "name": "a", "topics": "", "topics.regex": "["}),
    ("topics twice", SINKS, {**SINK, "name": "a", "topics": "a,,b , a"}),
    (
        "source without topic",
        SOURCES,
        {"connector.class": "FileStreamSource", "name": "a", "file": "{dir}/x"},
    ),
    ("source, empty topic", SOURCES, {**SOURCE, "name": "a", "topic": ""}),
    ("batch.size", SOURCES, {**SOURCE, "name": "a", "batch.size": "many"}),
    ("exactly once", SOURCES, {**SOURCE, "name": "a", "exactly.once.support": "never"}),
    ("boundary", SOURCES, {**SOURCE, "name": "a", "transaction.boundary": "never"}),
    ("unknown keys", SINKS, {**SINK, "name": "a", "colour": "red", "x.y": ""}),
    ("no file", SINKS, {"connector.class": "FileStreamSink", "name": "a", "topics": "t"}),
    (
        "converter of the key",
        SINKS,
        {**SINK, "name": "a", "key.converter": "org.apache.kafka.connect.storage.StringConverter"},
    ),
    ("converter unknown", SINKS, {**SINK, "name": "a", "value.converter": "org.example.Nope"}),
    (
        "converter json",
        SINKS,
        {**SINK, "name": "a", "value.converter": "org.apache.kafka.connect.json.JsonConverter"},
    ),
    ("plugin version", SINKS, {**SINK, "name": "a", "connector.plugin.version": "4.3.1"}),
    (
        "topic creation",
        SOURCES,
        {
            **SOURCE,
            "name": "a",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        },
    ),
    (
        "transform",
        SINKS,
        {
            **SINK,
            "name": "a",
            "transforms": "t",
            "transforms.t.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.t.field": "x",
        },
    ),
):
    plugins.add("PUT", path, config, note=note)

LOGGER = "org.example.contract"
plugins.add("GET", "/admin/loggers", view=lambda body: body["root"])
plugins.add("GET", "/admin/loggers/root")
plugins.add("PUT", f"/admin/loggers/{LOGGER}", {"level": "debug"})
plugins.add("PUT", f"/admin/loggers/{LOGGER}", {"level": "debug"}, note="same level")
plugins.add("PUT", f"/admin/loggers/{LOGGER}.below", {"level": "WARN"})
plugins.add("GET", f"/admin/loggers/{LOGGER}")
plugins.add("GET", f"/admin/loggers/{LOGGER}.below")
plugins.add(
    "GET", "/admin/loggers", note="after", view=lambda body: [k for k in body if LOGGER in k]
)
plugins.add("PUT", f"/admin/loggers/{LOGGER}", {"level": "Error"}, note="with those below")
plugins.add("GET", f"/admin/loggers/{LOGGER}.below", note="changed too")
plugins.add("PUT", f"/admin/loggers/{LOGGER}?scope=worker", {"level": "TRACE"})
plugins.add("GET", f"/admin/loggers/{LOGGER}", note="trace")
plugins.add("PUT", f"/admin/loggers/{LOGGER}?scope=galaxy", {"level": "FATAL"})
plugins.add("GET", f"/admin/loggers/{LOGGER}", note="fatal")
plugins.add("PUT", f"/admin/loggers/{LOGGER}?scope=CLUSTER", {"level": "OFF"})
plugins.add("PUT", f"/admin/loggers/{LOGGER}/", {"level": "INFO"})
