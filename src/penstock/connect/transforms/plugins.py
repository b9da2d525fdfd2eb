"""The transforms and predicates of Apache Kafka: their classes and their keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from penstock.connect.config_definition import (
    Check,
    Definition,
    Key,
    Type,
    one_of,
    one_of_any_case,
)
from penstock.connect.transforms.option_checks import cast_spec, filled, not_null, renames

PACKAGE = "org.apache.kafka.connect.transforms."
KEY, VALUE = "key", "value"
TARGET_TYPES = ("string", "unix", "Date", "Time", "Timestamp")
PRECISIONS = ("nanoseconds", "microseconds", "milliseconds", "seconds")
_SUFFIX = "End the name with `!` for a required field, with `?` for an optional one (the default)."


@dataclass(frozen=True)
class Plugin:
    """One class: its full name, what it does, the part of a record that it works on, and its keys.

    >>> find_transform("InsertField$Value").class_name
    'org.apache.kafka.connect.transforms.InsertField$Value'
    """

    class_name: str
    kind: str
    part: str | None
    definition: Definition


def _list(name: str, documentation: str, check: Check | None = None) -> Key:
    return Key(name, Type.LIST, documentation=documentation, importance="HIGH", check=check)


def _text(
    name: str,
    documentation: str,
    importance: str = "HIGH",
    default: str | None = None,
    check: Check | None = None,
) -> Key:
    return Key(name, Type.STRING, default, documentation, importance, check=check)


_required = partial(Key, type=Type.STRING)
_DEFAULTS = Key(
    "replace.null.with.default",
    Type.BOOLEAN,
    "true",
    "Whether a field that is null gets the default of its schema, where it has one.",
)


def _field_name(name: str, what: str) -> Key:
    return _text(name, f"The field that gets {what}. {_SUFFIX}", "MEDIUM")


_PART_KEYS: dict[str, tuple[Key, ...]] = {
    "Cast": (
        _list(
            "spec",
            "Fields and the types that they are cast to, as in `id:int64,name:string`; one type alone "
            "is for the whole key or value. The types: int8, int16, int32, int64, float32, float64, "
            "boolean, string. Bytes can be cast to string only.",
            cast_spec,
        ),
        _DEFAULTS,
    ),
    "ExtractField": (
        _required("field", documentation="The field that becomes the key or value."),
        _DEFAULTS,
        _text(
            "field.syntax.version",
            "`V1`: `field` is the name of a field. `V2`: it is a path with dots; a name that has dots "
            "is written between backticks.",
            default="V1",
            check=one_of_any_case("V1", "V2"),
        ),
    ),
    "Flatten": (_text("delimiter", "What is between the names of nested fields.", "MEDIUM", "."),),
    "HeaderFrom": (
        _list("fields", "The fields whose values become headers."),
        _list("headers", "The names of these headers, in the order of `fields`."),
        _required(
            "operation",
            documentation="`copy`: the fields stay; `move`: they are removed.",
            importance="HIGH",
            check=one_of("move", "copy"),
        ),
        _DEFAULTS,
    ),
    "HoistField": (_required("field", documentation="The only field of the new struct or map."),),
    "InsertField": (
        _field_name("topic.field", "the topic"),
        _field_name("partition.field", "the partition"),
        _field_name("offset.field", "the offset, of records that a sink connector reads"),
        _field_name("timestamp.field", "the timestamp of the record"),
        _field_name("static.field", "the text of static.value"),
        _text("static.value", "The text for static.field.", "MEDIUM"),
        _DEFAULTS,
    ),
    "MaskField": (
        _list("fields", "The fields whose values are hidden."),
        _text(
            "replacement",
            "What numbers and texts are replaced with; default: 0 and the empty text.",
            "LOW",
            check=filled,
        ),
        _DEFAULTS,
    ),
    "ReplaceField": (
        Key("exclude", Type.LIST, "", "Fields that are removed, even if `include` has them."),
        Key("include", Type.LIST, "", "The fields that stay; default: all."),
        Key("renames", Type.LIST, "", "New names of fields, as in `old:new`.", check=renames),
        _DEFAULTS,
    ),
    "SetSchemaMetadata": (
        _text("schema.name", "The name that the schema gets."),
        Key("schema.version", Type.INT, None, "The version that the schema gets.", "HIGH"),
        _DEFAULTS,
    ),
    "TimestampConverter": (
        _text("field", "The field that is converted; default: the whole key or value.", default=""),
        _required(
            "target.type",
            documentation="What it becomes: string, unix, Date, Time or Timestamp.",
            importance="HIGH",
            check=one_of(*TARGET_TYPES),
        ),
        _text(
            "format",
            "The pattern of texts, as Java's SimpleDateFormat has it; for texts that are read, and "
            "for target.type string.",
            "MEDIUM",
            "",
        ),
        _text(
            "unix.precision",
            "The unit of numbers: seconds, milliseconds, microseconds or nanoseconds. What is smaller "
            "than a millisecond is lost.",
            "LOW",
            "milliseconds",
            one_of(*PRECISIONS),
        ),
        _DEFAULTS,
    ),
}
_RECORD_KEYS: dict[str, tuple[Key, ...]] = {
    "DropHeaders": (_list("headers", "The names of the headers that are removed."),),
    "Filter": (),
    "InsertHeader": (
        _required(
            "header", documentation="The name of the header.", importance="HIGH", check=not_null
        ),
        _required(
            "value.literal",
            documentation="The value of the header: the same in all records.",
            importance="HIGH",
            check=not_null,
        ),
    ),
    "RegexRouter": (
        _required(
            "regex",
            documentation="A regular expression of Java for the whole name of the topic.",
            importance="HIGH",
        ),
        _required(
            "replacement",
            documentation="The new name of the topic; $1 is the first group of `regex`.",
            importance="HIGH",
        ),
    ),
    "TimestampRouter": (
        _text(
            "topic.format",
            "The new name of the topic, with ${topic} and ${timestamp}.",
            default="${topic}-${timestamp}",
        ),
        _text(
            "timestamp.format",
            "The pattern of ${timestamp}, as Java's SimpleDateFormat has it.",
            default="yyyyMMdd",
        ),
    ),
    "ValueToKey": (_list("fields", "The fields of the value that make up the key."), _DEFAULTS),
}
_PREDICATE_KEYS: dict[str, tuple[Key, ...]] = {
    "HasHeaderKey": (_required("name", documentation="The name of the header.", check=filled),),
    "RecordIsTombstone": (),
    "TopicNameMatches": (
        _required(
            "pattern",
            documentation="A regular expression of Java for the whole name of the topic.",
            check=filled,
        ),
    ),
}


def _plugins() -> list[Plugin]:
    made = [
        Plugin(f"{PACKAGE}{kind}${part.capitalize()}", kind, part, Definition(keys))
        for kind, keys in _PART_KEYS.items()
        for part in (KEY, VALUE)
    ]
    made += [Plugin(f"{PACKAGE}{k}", k, None, Definition(keys)) for k, keys in _RECORD_KEYS.items()]
    return sorted(made, key=lambda plugin: plugin.class_name)


TRANSFORMS: tuple[Plugin, ...] = tuple(_plugins())
"""All transforms, by the names of their classes."""
PREDICATES: tuple[Plugin, ...] = tuple(
    Plugin(f"{PACKAGE}predicates.{kind}", kind, None, Definition(keys))
    for kind, keys in _PREDICATE_KEYS.items()
)
"""All predicates, by the names of their classes."""


def find_transform(name: str) -> Plugin | None:
    """Return a transform by the name of its class, full or without the package; None if unknown."""
    return _found(TRANSFORMS, name)


def find_predicate(name: str) -> Plugin | None:
    """Return a predicate by the name of its class, full or without the package; None if unknown.

    >>> find_predicate("RecordIsTombstone").definition.keys
    ()
    """
    return _found(PREDICATES, name)


def _found(plugins: tuple[Plugin, ...], name: str) -> Plugin | None:
    return next((p for p in plugins if name in (p.class_name, p.class_name.split(".")[-1])), None)
