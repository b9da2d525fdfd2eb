"""Configurations are checked with their transforms and converters; no key is ignored silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.own_package import installed

from penstock.connect.connector_class import Catalog
from penstock.connect.connectors import CATALOG
from penstock.connect.installed_classes import installed_classes
from penstock.connect.validation import Validation, validate

SINK = {"name": "out", "connector.class": "FileStreamSink", "file": "/data/out", "topics": "a"}
SOURCE = {"name": "in", "connector.class": "FileStreamSource", "file": "/data/in", "topic": "a"}
ROUTE = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": "a"}


def check(base: dict[str, str], **more: str) -> Validation:
    return validate(CATALOG, {**base, **more})


def test_keys_of_transforms_predicates_and_converters_are_listed_as_connect_does() -> None:
    given = {
        **SINK,
        **ROUTE,
        "predicates": "p",
        "predicates.p.type": "RecordIsTombstone",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    found = validate(CATALOG, given).described()
    values = {each["value"]["name"]: each["value"] for each in found["configs"]}
    names = [*values]
    assert names[:2] == ["name", "connector.class"]
    assert (
        names.index("predicates.p.type")
        < names.index("file")
        < names.index("value.converter.schemas.enable")
    )
    assert values["value.converter"]["value"] == "org.apache.kafka.connect.json.JsonConverter"
    assert values["value.converter.schemas.enable"]["value"] == "false"
    assert values["transforms.r.replacement"]["errors"] == [
        'Missing required configuration "transforms.r.replacement" which has no default value.'
    ]
    assert found["groups"][-4:] == ["Transforms: r", "Predicates: p", "Schemas", "Serialization"]
    assert found["error_count"] == 1


@pytest.mark.parametrize(
    ("more", "errors"),
    [
        (
            {"value.converter": "org.example.Nope"},
            ["Invalid value org.example.Nope for configuration value.converter: Class org.example.Nope "
             "could not be found."],
        ),
        (
            {"transforms": "r", "transforms.r.type": "Nope"},
            ["Invalid value Nope for configuration transforms.r.type: Class Nope could not be found.",
             "Invalid value null for configuration transforms.r.type: Not a Transformation"],
        ),
        (
            {"transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p"},
            ["transforms.f: Unknown configuration 'predicates.p.type'; the list `predicates` has: none"],
        ),
        (
            {"transforms": "h", "transforms.h.type": "InsertHeader", "transforms.h.header": "x",
             "transforms.h.value.literal": "1", "header.converter": "JsonConverter"},
            ["Invalid value org.apache.kafka.connect.json.JsonConverter for configuration "
             "header.converter: the transform h makes headers, which are text here; use "
             "SimpleHeaderConverter or StringConverter"],
        ),
        (
            {"value.converter": "AvroConverter"},
            ['Missing required configuration "value.converter.schema.registry.url" which has no default '
             "value."],
        ),
        ({"transforms": "a,a", "transforms.a.type": "Filter"},
         ["Invalid value [a, a] for configuration transforms: Duplicate alias provided."]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_parts_is_an_error(more: dict[str, str], errors: list[str]) -> None:
    assert check(SINK, **more).errors == errors


def test_keys_without_effect_are_warnings() -> None:
    more: dict[str, str] = {
        "flie": "x",
        "value.converter.schemas.enable": "false",
        "transforms.r.type": "Filter",
        "producer.override.linger.ms": "5",
        "consumer.override.auto.offset.reset": "latest",
    }
    found = check(SINK, **more)
    assert found.errors == []
    assert {key for key, _ in found.warnings} == {
        "flie",
        "value.converter.schemas.enable",
        "transforms.r.type",
        "producer.override.linger.ms",
    }
    texts = dict(found.warnings)
    expected = "flie is not known to this connector, and has no effect; did you mean 'file'?"
    assert texts["flie"] == expected
    assert check(SOURCE, **{"value.converter": "JsonConverter"}).warnings == ()


def test_connectors_of_other_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    with installed(tmp_path, monkeypatch):
        catalog = Catalog(installed_classes())
        given = {"connector.class": "Lines", "name": "x", "topics": "a", "path": "b.txt"}
        assert validate(catalog, given).errors == [
            "Invalid value b.txt for configuration path: it ends with .json"
        ]
        (tmp_path / "acme_components-1.0.dist-info" / "entry_points.txt").write_text(
            "[penstock.connectors]\nwrong = json:dumps\nmissing = acme_nothing:X\n"
        )
        assert installed_classes() == ()
    reasons = [each.reason for each in caplog.records if each.message == "connector_not_loaded"]
    assert reasons[0] == "No module named 'acme_nothing'"
    assert reasons[1].startswith("it is not a class of connectors")
