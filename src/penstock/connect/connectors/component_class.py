"""A class for each source and sink of Penstock, under its own name: its keys are their options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, cast

from pydantic import BaseModel

from penstock.connect.common_keys import KEY_CONVERTER, TASKS_MAX, TRANSFORMS, VALUE_CONVERTER
from penstock.connect.component_keys import OptionKey, option_keys, options_of
from penstock.connect.config_definition import Key, Type, one_of
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import (
    COORDINATES,
    TOMBSTONE,
    Imported,
    KeyColumns,
    Rows,
    Tombstones,
)
from penstock.connect.converters import find_converter
from penstock.connect.mapped_class import DELIVERY, MappedClass, only
from penstock.errors import ConfigError
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.pipeline.registry import component, names

_KEY_MODE, _KEY_FIELDS = "penstock.key.mode", "penstock.key.fields"
_TOMBSTONES, _METADATA = "penstock.tombstones", "penstock.metadata"
_TOPIC = Key(
    "topic",
    documentation="The topic of the records; names of the source in braces, as in shop.{table}.",
    importance="HIGH",
)
_OF_FIELDS = (
    Key(
        _KEY_MODE,
        default="none",
        documentation="The columns of rows besides the fields of the value: none, record_key (the key or "
        "its fields), record_value (fields that must exist), kafka (topic, partition and offset).",
        check=one_of("none", "record_key", "record_value", "kafka"),
    ),
    Key(_KEY_FIELDS, Type.LIST, "", "The names of these columns."),
    Key(
        _TOMBSTONES,
        default="refuse",
        documentation="What a record without a value is: refuse (an error), skip, or delete: a row that "
        f"deletes, with {TOMBSTONE} true.",
        check=one_of("refuse", "skip", "delete"),
    ),
    Key(
        _METADATA,
        Type.LIST,
        "",
        "More columns, kafka_NAME: topic, partition, offset, timestamp.",
        check=only(COORDINATES, "a record has no such part"),
    ),
)  # fmt: skip
# Their records are written by the connector's converters; others are what the system has: JSON, or bytes.
_TAKES_CONVERTERS, _JSON = frozenset({"database"}), frozenset({"http", "host_metrics"})
_ROWS: dict[str, Rows] = {"text_file": "text"}
# A table in the memory of a worker, which no one reads, and a sink that takes no rows.
_NOT_SINKS = frozenset({"memory", "stop"})
_NOT_SOURCES = frozenset({"kafka"})


class _OwnKeys:
    """The keys of a class, made when they are first asked for: only then its component is loaded."""

    def __get__(self, _instance: object, owner: type[ComponentClass]) -> tuple[Key, ...]:
        return owner.own_keys()


class ComponentClass(MappedClass):
    """Base of the classes that are made of components."""

    keys = cast("tuple[Key, ...]", _OwnKeys())
    component: ClassVar[str] = ""

    @classmethod
    def own_keys(cls) -> tuple[Key, ...]:
        """Return the options of the component as keys, and those of the class."""
        options = tuple(each.key for each in cls.options())
        return (
            *(_TOPIC if key.name == "topic" and cls.kind == "source" else key for key in options),
            *cls.more(),
        )

    @classmethod
    def options(cls) -> tuple[OptionKey, ...]:
        """Return the options of the component."""
        return _options(cls.kind, cls.component) if cls.component else ()

    @classmethod
    def more(cls) -> tuple[Key, ...]:
        """Return the keys that are not options."""
        if cls.kind == "source":
            return ()
        return (*(_OF_FIELDS if cls.rows == "fields" else ()), DELIVERY)

    def key_of(self, option: str, config: ConnectorConfig) -> str:
        """Return the key of an option, which has its name."""
        while option and option not in config.definition.by_name:
            option = option.rpartition(".")[0]
        return option or next(iter(config.definition.by_name))

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield unknown keys that are not members of a mapping."""
        mappings = tuple(f"{each.key.name}." for each in self.options() if each.is_open)
        for key, text in super().warnings(config):
            if not key.startswith(mappings):
                yield key, text

    def imported(self, config: ConnectorConfig) -> Imported:
        """Return what records are: as the source has them, unless converters or transforms read them."""
        if self.component in _TAKES_CONVERTERS:
            return Imported.any_format()
        form = _form(config.get(VALUE_CONVERTER))
        is_plain = form in (None, "string", "bytes")
        if self.component == "mirror" or (is_plain and not config[TRANSFORMS]):
            return Imported.final()
        has_bytes = _form(config.get(KEY_CONVERTER)) == "bytes"
        key = ConverterOptions(form="bytes" if has_bytes else "string")
        is_json = self.component in _JSON or "json" in str(config.get("format"))
        if is_json and not is_plain:
            return replace(Imported.json(), key=key)
        return Imported(ConverterOptions(form="bytes" if form == "bytes" else "string"), key)

    def key_columns(self, config: ConnectorConfig) -> KeyColumns:
        """Return the columns of the key."""
        columns = tuple(config[_KEY_FIELDS])
        match config[_KEY_MODE]:
            case "record_key":
                return KeyColumns.record_key(*columns)
            case "record_value":
                return KeyColumns.record_value(*columns)
            case "kafka":
                return KeyColumns.kafka(*columns)
        return KeyColumns.none()

    def tombstones(self, config: ConnectorConfig) -> Tombstones:
        """Return what a record without a value is."""
        return cast("Tombstones", config[_TOMBSTONES])

    def coordinates(self, config: ConnectorConfig) -> dict[str, str]:
        """Return the columns with the place of the record."""
        return {f"kafka_{name}": name for name in config[_METADATA]}

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield columns of a key that do not fit its mode, and changes of what is only copied."""
        if self.component == "mirror" and config[TRANSFORMS]:
            yield (
                TRANSFORMS,
                f"Invalid value {config.get(TRANSFORMS)} for configuration {TRANSFORMS}: a mirror copies "
                "records as they are; change them with a connector that reads the copies",
            )
        if self.rows != "fields" or self.kind == "source":
            return
        if config[_KEY_MODE] == "kafka" and len(config[_KEY_FIELDS]) not in (0, 3):
            yield (
                _KEY_FIELDS,
                f"Invalid value for configuration {_KEY_FIELDS}: with kafka there are three columns, for "
                f"topic, partition and offset; given {len(config[_KEY_FIELDS])}",
            )

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the component with the options that are given."""
        options = options_of(self.options(), config)
        if self.kind == "source":
            return {"source": {self.component: {**options, "tasks_max": config[TASKS_MAX]}}}
        fields = component("sink", self.component).model_fields
        if self.rows == "fields" and config[_TOMBSTONES] == "delete" and "delete_when" in fields:
            options.setdefault("delete_when", TOMBSTONE)
        return {"sink": {self.component: options}, "delivery": config[DELIVERY.name]}


def _form(name: str | None) -> str | None:
    """Return the form of a converter; None where there is none, or an unknown one."""
    try:
        return find_converter(name).form if name else None
    except ConfigError:
        return None


@cache
def _options(kind: str, name: str) -> tuple[OptionKey, ...]:
    model: type[BaseModel] = component(kind, name)
    if kind == "sink":
        return option_keys(model)
    formats = {"key_format", "value_format"} if name in _TAKES_CONVERTERS else set[str]()
    return option_keys(model, frozenset({"tasks_max", *formats}))


def component_classes() -> tuple[type[ConnectorClass], ...]:
    """Return a class for each source and each sink; that of the sink `files` is PenstockFilesSink."""
    sources = [name for name in names("source") if name not in _NOT_SOURCES]
    sinks = [name for name in names("sink") if name not in _NOT_SINKS]
    return (*(_made("source", name) for name in sources), *(_made("sink", name) for name in sinks))


def _made(kind: str, name: str) -> type[ConnectorClass]:
    words = "".join(word.capitalize() for word in name.split("_"))
    title = f"Penstock{words}{kind.capitalize()}"
    members = {
        "__module__": __name__,
        "__doc__": f"The {kind} `{name}`.",
        "names": (f"penstock.connect.{title}Connector",),
        "kind": kind,
        "component": name,
        "rows": _ROWS.get(name, "fields"),
    }
    return type(title, (ComponentClass,), members)
