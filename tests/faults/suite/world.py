"""A world: one exactly-once pipeline for each kind of sink, all reading one topic full of hostile texts.

A record's number `n` says everything about it: where it is in the topic, what its value is, and what
may become of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import orjson
from tests.faults.suite.load import PARTITIONS, is_bad
from tests.faults.suite.targets import TARGETS, Setting

from penstock import Pipeline
from penstock.engine.dead_letters import DeadLetter

WORLD = ("files", "files, compacted", "delta", "delta, compacted", "iceberg", "database",
         "database, upsert", "database, sqlite", "kafka")  # fmt: skip
# Texts that look like failures of other systems, and signs that break lines and terminals.
HOSTILE = (
    "No space left on device",
    "penstock.errors.TransientError: the broker is away",
    "io.delta.exceptions.ConcurrentAppendException: files were added",
    "Permission denied",
    "SQLSTATE: 40001 deadlock detected\nSQLSTATE: 57P01",
    'line\r\nbreaks, "quotes", \\. and\ttabs',
    "\x1b[2J\x1b[31mred\x07",
    "org.apache.kafka.common.errors.ProducerFencedException",
    "'; DROP TABLE penstock_offsets; --",
)
# PostgreSQL refuses the character NUL; the others store it.
_NUL_EVERY, _NUL_AT = 6007, 1511
# What one of the definitions refuses.
_REFUSED_EVERY, _REFUSED_AT = 9001, 7
_COLUMNS = "kafka_partition, kafka_offset"
DEFINITIONS: dict[str, list[dict[str, str]]] = {
    "plain": [],
    "rewritten": [
        {"sql": f"SELECT n * 2 - n AS n, concat(text, '') AS text, {_COLUMNS} FROM rows"}
    ],
    "refusing": [
        {
            "sql": f"SELECT if(n % {_REFUSED_EVERY} = {_REFUSED_AT}, raise_error(concat('refused: ', "
            f"text)), n) AS n, text, {_COLUMNS} FROM rows"
        }
    ],
}


def text(n: int) -> str:
    has_nul = n % _NUL_EVERY == _NUL_AT
    return f"{HOSTILE[n % len(HOSTILE)]} {n}" + ("\x00" if has_nul else "")


def value(n: int) -> bytes:
    """Return the value of a record: most are JSON, some are not."""
    if is_bad(n):
        return f"bad {n}: {HOSTILE[n % len(HOSTILE)]}".encode()
    return orjson.dumps({"n": n, "text": text(n)})


def corrected(n: int) -> bytes:
    """Return what a person makes of a bad record before it is replayed."""
    return orjson.dumps({"n": n, "text": f"corrected {n}"})


def may_be_refused(n: int) -> bool:
    """Whether a step or a database may refuse the record: it is in the table or in the dead letters."""
    return n % _REFUSED_EVERY == _REFUSED_AT or n % _NUL_EVERY == _NUL_AT


def number_at(partition: int, offset: int) -> int:
    """Return which record is at a place of the topic."""
    return offset * PARTITIONS + partition


def number_of(letter: DeadLetter) -> int:
    return number_at(letter.partition, letter.offset)


@dataclass(frozen=True)
class World:
    """Where the pipelines of one run have their things; the setting's name is the topic's."""

    setting: Setting
    sinks: tuple[str, ...]

    def of(self, sink: str) -> Setting:
        """Return the setting of one pipeline."""
        short = sink.replace(", ", "-")
        name, folder = f"{self.setting.name}-{short}", self.setting.folder / short
        return replace(self.setting, name=name, folder=folder)

    def definition(self, sink: str, state: str, definition: str = "plain") -> dict[str, Any]:
        """Return the definition of the pipeline into a sink, with its state in this folder."""
        own = self.of(sink)
        return {
            "name": own.name,
            "source": {"kafka": {"topics": self.setting.name, "max_records_per_batch": 5_000}},
            "decode": {"json": {"schema": "n bigint not null, text string", "metadata": _METADATA}},
            "steps": DEFINITIONS[definition],
            "sink": TARGETS[sink].sink(own),
            "delivery": "exactly-once",
            "restart": {"wait": "200ms", "longest": "2s"},
            "state": str(self.states / state),
            **TARGETS[sink].options,
        }

    def pipeline(self, sink: str, state: str, definition: str) -> Pipeline:
        """Return the pipeline into a sink, with its state in this folder of the world."""
        given = self.definition(sink, state, definition)
        return Pipeline(connection=self.setting.connection, spark=SPARK, **given)

    @property
    def states(self) -> Any:
        """The folder of all state folders."""
        return self.setting.folder / "states"

    def written(self) -> str:
        """Return it as text for a command line."""
        return json.dumps({"setting": self.setting.written(), "sinks": self.sinks})

    @classmethod
    def read(cls, written: str) -> World:
        given = json.loads(written)
        return cls(Setting.read(given["setting"]), tuple(given["sinks"]))


_METADATA = ["partition", "offset"]
SPARK = {"memory": "1g"}


@dataclass(frozen=True)
class Run:
    """How one process runs the pipelines: the state folder of each, the definition and lease of all."""

    states: dict[str, str]
    definition: str = "plain"
    once: bool = False
    token: int | None = None

    def written(self) -> str:
        return json.dumps(self.__dict__)

    @classmethod
    def read(cls, written: str) -> Run:
        return cls(**json.loads(written))
