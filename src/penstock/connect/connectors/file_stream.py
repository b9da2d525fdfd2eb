"""Kafka's own file connectors: lines of one file into a topic, values of topics as lines of one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from penstock.connect.config_definition import Key, Type, not_empty
from penstock.connect.connector_class import ConnectorClass, Kind, Offsets
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported
from penstock.connect.connectors.file_offsets import offsets_of, positions_of

_FILE = Key("file", default=None, documentation="The path of the file.", importance="HIGH")


class FileStreamSource(ConnectorClass):
    """Each line of a file, which may grow, as a record."""

    names: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    kind: ClassVar[Kind] = "source"
    keys: ClassVar[tuple[Key, ...]] = (
        _FILE,
        Key("topic", documentation="The topic of the lines.", importance="HIGH", check=not_empty),
        Key("batch.size", Type.INT, "2000", "The most lines of one transaction.", "LOW"),
    )

    def tasks(self, _config: ConnectorConfig) -> int:
        """Return one: a file has one reader."""
        return 1

    def take_over(self, config: ConnectorConfig, offsets: Offsets) -> Offsets:
        """Return positions of the file by its identity for offsets of Kafka's class."""
        return positions_of(config["file"], offsets)

    def shown_offsets(self, config: ConnectorConfig, positions: Offsets) -> Offsets:
        """Return the position of the file under its name."""
        return offsets_of(config["file"], positions)

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield that standard input is not read here."""
        yield from _problems(config)

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
        return {"source": {"files": source}}

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return lines of text."""
        return Imported.lines()


class FileStreamSink(ConnectorClass):
    """The values of topics, each as a line of a file."""

    names: ClassVar[tuple[str, ...]] = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    kind: ClassVar[Kind] = "sink"
    keys: ClassVar[tuple[Key, ...]] = (_FILE,)

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield that standard output is not written here."""
        yield from _problems(config)

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that appends to the file."""
        return {"sink": {"text_file": {"path": config["file"]}}}


def _problems(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    if not config["file"]:
        shown = "null" if config["file"] is None else ""
        yield (
            "file",
            f"Invalid value {shown} for configuration file: a connector runs in a worker, whose standard "
            "input and output no one reads; give the path of a file",
        )


def _literal(name: str) -> str:
    """Return a pattern of file names that matches this name alone.

    >>> _literal("app[1].log")
    'app[[]1].log'
    """
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
