"""A class of connectors: its names, its keys, and the pipeline that a configuration of it becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from penstock.connect.common_keys import CONNECTOR_CLASS, SINK, SOURCE, TASKS_MAX, VERSION
from penstock.connect.config_definition import Definition, Key
from penstock.connect.connector_config import ConnectorConfig

Kind = Literal["source", "sink"]


class ConnectorClass(ABC):
    """What a configuration's `connector.class` names. Third-party connectors are subclasses of it.

    `names` are the classes of Kafka Connect that it stands for, the first of which is shown in lists.
    """

    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[Kind]
    version: ClassVar[str] = VERSION
    keys: ClassVar[tuple[Key, ...]] = ()

    @classmethod
    def definition(cls) -> Definition:
        """Return all keys: the common ones, then its own."""
        common = SOURCE if cls.kind == "source" else SINK
        return common.plus(*cls.keys)

    @abstractmethod
    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return source or sink of the pipeline, and what else of its definition this class decides."""

    def tasks(self, config: ConnectorConfig) -> int:
        """Return how many tasks there are."""
        return int(config[TASKS_MAX])

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


class UnknownClassError(LookupError):
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
