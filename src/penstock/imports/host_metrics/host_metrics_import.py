"""The source `host_metrics`: its options, and how measurements become records."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field, field_validator

from penstock.encode.column_encodes import takes_one_column
from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.errors import ConfigError
from penstock.imports.host_metrics.measured_values import values_of
from penstock.imports.host_metrics.measuring import measure
from penstock.pipeline.importing import (
    Import,
    Part,
    Place,
    Portion,
    Position,
    Reader,
    System,
    filled,
    key_of,
)
from penstock.pipeline.values import Duration

Kind = Literal["cpu", "memory", "disk", "filesystem", "network", "load", "process", "temperature"]


class HostMetricsImport(Import):
    """Measurements of this machine: processors, memory, disks, network, load, processes, temperatures.

    One record for each processor, disk, interface and so on, as JSON or in `value_format`, with `host`,
    `kind` and `time`; its key is the machine's name, so that the measurements of one machine stay in
    order. Counters (bytes, seconds) count from the start of the machine: rates are differences, and one
    that is missed loses nothing.

    A topic of its own for each kind: `topic: metrics.{kind}`. It measures the machine on which its tasks
    run, so let Spark run embedded, on each machine of a fleet, under a name of its own for each: they may
    all write into the same topics.
    """

    name = "host_metrics"
    topic_names = frozenset({"kind", "host"})

    kinds: list[Kind] = Field(
        default_factory=lambda: [*get_args(Kind)], min_length=1, description="What to measure."
    )
    interval: Duration = Field(default=10.0, gt=0, description="The time between measurements.")
    top: int = Field(
        default=20, ge=1, description="How many processes: those with the most processor time."
    )
    host: str = Field(default="", description="The name of this machine; default: its host name.")
    value_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="`json`; with options `avro`, `protobuf`, `json_schema`: these need a topic for each "
        "kind, `{kind}`; also `csv`, `arrow` and `dolphindb`.",
    )
    poll: Duration = Field(
        default=0.5, gt=0, description="How often to look whether a measurement is due."
    )

    @field_validator("kinds")
    @classmethod
    def _are_different(cls, given: list[Kind]) -> list[Kind]:
        if len(set(given)) < len(given):
            raise ValueError(f"{', '.join(given)}: a kind is named twice")
        return given

    @field_validator("value_format")
    @classmethod
    def _writes_rows(cls, given: FormatChoice) -> FormatChoice:
        if takes_one_column(given):
            raise ValueError(
                f"a measurement has several values, and {given.name!r} is for one; allowed: json, avro, "
                "protobuf, json_schema, csv, arrow, dolphindb"
            )
        return given

    def system(self) -> System:
        """Return this machine."""
        registered = self.value_format.registered
        if registered and "{kind}" not in self.topic and len(self.kinds) > 1:
            raise ConfigError(
                f"the kinds of measurements have different schemas, and would all be registered for "
                f"the topic {self.topic!r}: give a topic for each, as in 'metrics.{{kind}}'"
            )
        host = self.host or socket.gethostname()
        return Host([self._metric(kind, host) for kind in self.kinds], self.interval)

    def _metric(self, kind: str, host: str) -> Metric:
        topic = filled(self.topic, {"kind": kind, "host": host})
        return Metric(kind, host, self.top, self.value_format, topic)


@dataclass(frozen=True)
class Host(System):
    """This machine: each kind is due when its interval is over."""

    metrics: list[Metric]
    interval: float

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the kinds that are due."""
        return [metric for metric in self.metrics if self._is_due(positions, metric)]

    def _is_due(self, positions: Mapping[str, Position], metric: Metric) -> bool:
        last = positions.get(key_of(metric.place), {}).get("time")
        if not isinstance(last, (int, float)):
            return True  # it was never measured, or an operator has set something else
        # A clock that was put back makes a measurement due, too.
        return abs(time.time() - last / 1000) >= self.interval


@dataclass(frozen=True)
class Metric(Part):
    """One kind of measurement."""

    kind: str
    host: str
    top: int
    format: FormatChoice = JSON_FORMAT
    topic: str = ""

    @property
    def place(self) -> Place:
        """Return the machine and the kind."""
        return {"host": self.host, "kind": self.kind}

    @property
    def names(self) -> Mapping[str, str]:
        """Return the machine and the kind."""
        return {"host": self.host, "kind": self.kind}

    @contextmanager
    def open(self, _position: Position | None) -> Iterator[Reader]:
        """Measure when it is taken; a position says only when that was."""
        yield Measurement(self)


class Measurement(Reader):
    """One measurement, which is taken once."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._taken = False

    def take(self, _most: int) -> Iterator[Portion]:
        """Yield the measurement."""
        if self._taken:
            return
        self._taken = True
        metric = self._metric
        measured = measure(metric.kind, metric.top, metric.host)
        # Also where the machine has nothing of a kind: it is due again after the interval only.
        values = values_of(measured, metric.format, metric.topic)
        keys = [metric.host.encode()] * len(values)
        yield Portion.of(values, {"time": int(time.time() * 1000)}, keys)
