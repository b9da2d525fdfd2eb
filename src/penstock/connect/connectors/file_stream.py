"""Kafka's own file connectors: lines of one file into a topic, values of topics as lines of one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from penstock.connect.common_keys import PREDICATES, TRANSFORMS, VALUE_CONVERTER
from penstock.connect.config_definition import Key, Type
from penstock.connect.connector_class import ConnectorClass, Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import find_converter

_LINES = (find_converter("StringConverter").names,)
_TEXTS = (*_LINES, find_converter("ByteArrayConverter").names)
_FILE = Key("file", default=None, documentation="The path of the file.", importance="HIGH")


class FileStreamSource(ConnectorClass):
    """Each line of a file, which may grow, as a record."""

    names: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    kind: ClassVar[Kind] = "source"
    keys: ClassVar[tuple[Key, ...]] = (
        _FILE,
        Key("topic", documentation="The topic of the lines.", importance="HIGH"),
        Key("batch.size", Type.INT, "2000", "The most lines of one transaction.", "LOW"),
    )

    def tasks(self, _config: ConnectorConfig) -> int:
        """Return one: a file has one reader."""
        return 1

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield that standard input is not read here, and converters that lines do not have yet."""
        yield from _problems(config, "source")

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that reads the lines of the file."""
        path = Path(config["file"])
        source = {
            "folder": str(path.parent),
            "pattern": _literal(path.name),
            "format": "lines",
            "max_records": config["batch.size"],
            "topic": config["topic"],
        }
        return {"source": {"files": source}, "sink": {"kafka": config["topic"]}}


class FileStreamSink(ConnectorClass):
    """The values of topics, each as a line of a file."""

    names: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    kind: ClassVar[Kind] = "sink"
    keys: ClassVar[tuple[Key, ...]] = (_FILE,)

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield that standard output is not written here, and converters that lines do not have yet."""
        yield from _problems(config, "sink")

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that appends to the file."""
        return {"sink": {"text_file": {"path": config["file"]}}}


def _problems(config: ConnectorConfig, use: str) -> Iterator[tuple[str, str]]:
    if config["file"] is None:
        yield "file", _needed("file")
    for key in (TRANSFORMS, PREDICATES):
        if config[key]:
            yield key, _not_yet(key, config.get(key), "leave it out")
    known = _LINES if use == "source" else _TEXTS
    given = config.get(VALUE_CONVERTER)
    if given is not None and not any(given in short for short in known):
        names = ", ".join(short[0] for short in known)
        yield VALUE_CONVERTER, _not_yet(VALUE_CONVERTER, given, f"lines have {names}")


def _not_yet(key: str, given: object, what: str) -> str:
    return f"Invalid value {given} for configuration {key}: this connector has no such part here; {what}"


def _needed(key: str) -> str:
    return (
        f"Invalid value null for configuration {key}: a connector runs in a worker, whose standard input "
        "and output no one reads; give the path of a file"
    )


def _literal(name: str) -> str:
    """Return a pattern of file names that matches this name alone.

    >>> _literal("app[1].log")
    'app[[]1].log'
    """
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
