"""The source `host_metrics`: its options, and how measurements become records."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec
from pydantic import Field, field_validator

from penstock.imports.host_metrics.measuring import measure
from penstock.pipeline.importing import (
    Import,
    Part,
    Place,
    Portion,
    Position,
    Reader,
    System,
    key_of,
)
from penstock.pipeline.values import Duration

Kind = Literal["cpu", "memory", "disk", "filesystem", "network", "load", "process", "temperature"]


class HostMetricsImport(Import):
    """Measurements of this machine: processors, memory, disks, network, load, processes, temperatures.

    One JSON record for each processor, disk, interface and so on, with `host`, `kind` and `time`; its
    key is the machine's name, so that the measurements of one machine stay in order. Counters (bytes,
    seconds) count from the start of the machine: rates are differences, and one that is missed loses
    nothing.

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
    poll: Duration = Field(
        default=0.5, gt=0, description="How often to look whether a measurement is due."
    )

    @field_validator("kinds")
    @classmethod
    def _are_different(cls, given: list[Kind]) -> list[Kind]:
        if len(set(given)) < len(given):
            raise ValueError(f"{', '.join(given)}: a kind is named twice")
        return given

    def system(self) -> System:
        """Return this machine."""
        host = self.host or socket.gethostname()
        return Host([Metric(kind, host, self.top) for kind in self.kinds], self.interval)


@dataclass(frozen=True)
class Host(System):
    """This machine: each kind is due when its interval is over."""

    metrics: list[Metric]
    interval: float

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the kinds that are due."""
        return [metric for metric in self.metrics if self._is_due(positions, metric)]

    def _is_due(self, positions: Mapping[str, Position], metric: Metric) -> bool:
        last = positions.get(key_of(metric.place))
        # A clock that was put back makes a measurement due, too.
        return last is None or abs(time.time() - last["time"] / 1000) >= self.interval


@dataclass(frozen=True)
class Metric(Part):
    """One kind of measurement."""

    kind: str
    host: str
    top: int

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
        values = [msgspec.json.encode(each) for each in measured]
        keys = [metric.host.encode()] * len(values)
        yield Portion.of(values, {"time": int(time.time() * 1000)}, keys)
