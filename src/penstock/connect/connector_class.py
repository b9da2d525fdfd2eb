"""A class of connectors: its names, its keys, and the pipeline that a configuration of it becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from penstock.connect.common_keys import CONNECTOR_CLASS, SINK, SOURCE, TASKS_MAX, VERSION
from penstock.connect.config_definition import Definition, Key
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported, KeyColumns, Rows, Tombstones
from penstock.connect.key_reports import KeyTable, key_warnings, refusals
from penstock.errors import ConfigError

Kind = Literal["source", "sink"]
Offsets = list[tuple[dict[str, Any], dict[str, Any] | None]]
"""Partitions of a source with their offsets; None: it has none, and is read from its start."""


class ConnectorClass(ABC):
    """What a configuration's `connector.class` names. Third-party connectors are subclasses of it.

    `names` are the classes of Kafka Connect that it stands for, the first of which is shown in lists.
    """

    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[Kind]
    version: ClassVar[str] = VERSION
    keys: ClassVar[tuple[Key, ...]] = ()
    refused: ClassVar[KeyTable] = {}
    """Keys of that class in Kafka Connect that are errors here, with the reason and what to do."""
    without_effect: ClassVar[KeyTable] = {}
    """Keys that are accepted and change nothing here, with the reason why that does not matter."""
    rows: ClassVar[Rows] = "text"
    """What a sink takes; see `Rows`. Rows come after the connector's converters and transforms."""

    @classmethod
    def definition(cls) -> Definition:
        """Return all keys: the common ones, then its own."""
        common = SOURCE if cls.kind == "source" else SINK
        return common.plus(*cls.keys)

    @abstractmethod
    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return source or sink of the pipeline, and what else of its definition this class decides.

        A sink's class returns `sink`, and may return `steps` (which come after the transforms, and take
        the `rows` of this class) and `delivery`. A source's class returns `source` alone: an import whose
        `topic` is where records go, unless transforms change it.
        """

    def key_columns(self, _config: ConnectorConfig) -> KeyColumns:
        """Return which columns rows of `fields` have in addition to the fields of the value."""
        return KeyColumns.none()

    def tombstones(self, _config: ConnectorConfig) -> Tombstones:
        """Return what a record without a value is to a sink of `fields`."""
        return "refuse"

    def fields(self, _config: ConnectorConfig) -> tuple[str, ...]:
        """Return the only fields of the value that become columns of `fields`; none: all of them."""
        return ()

    def coordinates(self, _config: ConnectorConfig) -> dict[str, str]:
        """Return more columns for rows of `fields`: their names, with one of COORDINATES for each."""
        return {}

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return what the records of a source's import look like, before transforms and converters."""
        return Imported()

    def tasks(self, config: ConnectorConfig) -> int:
        """Return how many tasks there are."""
        return int(config[TASKS_MAX])

    def take_over(self, _config: ConnectorConfig, offsets: Offsets) -> Offsets:
        """Return offsets of Kafka Connect's class of this name as positions here, where they differ.

        Offsets in the form of this package are returned as they are. Raise ConfigError for those that
        have no position here. A place is given only once.
        """
        return offsets

    def shown_offsets(self, _config: ConnectorConfig, positions: Offsets) -> Offsets:
        """Return positions as offsets of Kafka Connect's class, the reverse of `take_over`."""
        return positions

    def refusals(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield the keys that are refused, with the reason."""
        yield from refusals(self.refused, self.without_effect, config)

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield keys that have no effect, each with a text that says so; none of them is an error."""
        yield from key_warnings(self.refused, self.without_effect, config)

    def problems(self, _config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield keys with what is wrong with them, beyond what each key tells for itself."""
        yield from ()


def short_names(name: str) -> tuple[str, ...]:
    """Return the names under which a class is found.

    >>> short_names("org.apache.kafka.connect.file.FileStreamSinkConnector")
    ('org.apache.kafka.connect.file.FileStreamSinkConnector', 'FileStreamSinkConnector', 'FileStreamSink')
    """
    last = name.rpartition(".")[2]
    return tuple(dict.fromkeys((name, last, last.removesuffix("Connector") or last)))


class UnknownClassError(ConfigError):
    """A class that no connector has."""

    def __init__(self, given: str, known: list[str]) -> None:
        super().__init__(
            "Failed to find any class that implements Connector and which name matches "
            f"{given[:200]}, available connectors are: {', '.join(known)}"
        )


@dataclass(frozen=True)
class Catalog:
    """The classes of connectors that there are."""

    classes: tuple[type[ConnectorClass], ...]

    def find(self, given: str) -> type[ConnectorClass]:
        """Return the class of a name, full or short; raise UnknownClassError."""
        for each in self.classes:
            if any(given in short_names(name) for name in each.names):
                return each
        raise UnknownClassError(given, [name for each in self.classes for name in each.names])

    def config(self, given: Mapping[str, str]) -> ConnectorConfig:
        """Return a configuration with the definition of its class."""
        return ConnectorConfig(given, self.find(given[CONNECTOR_CLASS]).definition())
