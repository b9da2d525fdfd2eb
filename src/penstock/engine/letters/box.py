"""The dead letters of a pipeline, wherever its sink for them keeps them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.config import Connection, find_connection
from penstock.engine.deadletters import TABLE, dead_letters_of
from penstock.engine.letters.letter import (
    DROPPED,
    PLANNED,
    REPLAYED,
    DeadLetter,
    as_headers,
    from_record,
)
from penstock.engine.session import spark_session
from penstock.kafka import Admin, Consumer, Producer
from penstock.kafka.consuming.loops import read_span
from penstock.pipeline import Batch, Opening, Pipeline
from penstock.sinks.kafka import KafkaSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Letterbox:
    """Reads letters and notes, and adds notes.

    A topic is read and written by the client, without Spark; a table through the sink itself.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._sink = pipeline.dead_letter_sink
        self._all: list[DeadLetter] | None = None

    def waiting(self) -> list[DeadLetter]:
        """Return the letters with which nothing was done yet, oldest first."""
        done = {n.identity for n in self._notes() if n.stage in (REPLAYED, DROPPED)}
        planned = {note.identity for note in self._notes(PLANNED)}
        letters = [letter for letter in self._read() if not letter.is_note]
        # A sink that is at-least-once may have a letter twice: it is one letter.
        unique = {letter.identity: letter for letter in letters}
        return [letter for identity, letter in unique.items() if identity not in done | planned]

    def unfinished(self) -> dict[int, list[DeadLetter]]:
        """Return the replays that were begun and not ended, each with the records that it takes."""
        ended = {note.about.replay for note in self._notes(REPLAYED)}
        found: dict[int, dict[Any, DeadLetter]] = {}
        for note in self._notes(PLANNED):
            if note.about.replay not in ended:
                found.setdefault(note.about.replay, {})[note.identity] = note
        return {number: list(notes.values()) for number, notes in found.items()}

    def plan(self, letters: Iterable[DeadLetter]) -> tuple[int, list[DeadLetter]]:
        """Write down a new replay, with the records as they shall be; return its number and notes."""
        last = max((note.about.replay for note in self._notes(PLANNED)), default=0)
        # By the clock, as epochs are: the letters may be gone while the sink still has their marks.
        number = max(last + 1, int(time.time()))
        notes = [letter.noted(PLANNED, number, letter.value) for letter in letters]
        self._add(notes)
        return number, notes

    def end(self, number: int, planned: Iterable[DeadLetter]) -> None:
        """Write down that a replay is done."""
        self._add([_same_letter(note, REPLAYED, number) for note in planned])

    def drop(self, letters: Iterable[DeadLetter]) -> None:
        """Write down that nothing is to be done with these letters."""
        self._add([letter.noted(DROPPED) for letter in letters])

    def _notes(self, stage: str | None = None) -> Iterator[DeadLetter]:
        return (x for x in self._read() if x.is_note and stage in (None, x.stage))

    def _read(self) -> list[DeadLetter]:
        if self._all is None:
            found = self._from_topic(self._sink) if isinstance(self._sink, KafkaSink) else None
            self._all = list(self._from_table() if found is None else found)
        return self._all

    def _add(self, notes: Sequence[DeadLetter]) -> None:
        if not notes:
            return
        self._all = None
        if isinstance(self._sink, KafkaSink):
            self._into_topic(self._sink, notes)
        else:
            self._into_table(notes)

    def _connection(self) -> Connection:
        given = self._sink.connection if isinstance(self._sink, KafkaSink) else None
        return given or self.pipeline.connection or find_connection(None)

    def _from_topic(self, sink: KafkaSink) -> Iterator[DeadLetter]:
        connection, topic = self._connection(), sink.topic
        with Admin(connection) as admin:
            if not admin.topic_ids([topic]):
                return
            ends = admin.latest(admin.partitions([topic]))
            start = admin.earliest(ends)
        with Consumer(connection, isolation_level="read_committed") as consumer:
            for records in read_span(consumer, start, ends):
                yield from filter(None, map(from_record, records))

    def _into_topic(self, sink: KafkaSink, notes: Iterable[DeadLetter]) -> None:
        with Producer(self._connection(), acks="all") as producer:
            for note in notes:
                headers = as_headers(note)
                producer.produce(sink.topic, note.key, note.value, headers=headers)

    def _from_table(self) -> Iterator[DeadLetter]:
        spark = self._spark()
        rows = self._sink.read_back(Opening(spark, TABLE, self._name(), self._connection()))
        if rows is None:
            return
        for row in rows.select(*TABLE.names).toArrow().to_pylist():
            row["headers"] = [(header["key"], header["value"]) for header in row["headers"] or ()]
            yield msgspec.convert(row, DeadLetter)

    def _into_table(self, notes: Sequence[DeadLetter]) -> None:
        spark, connection = self._spark(), self._connection()
        rows = spark.createDataFrame([_as_row(note) for note in notes], TABLE)
        name = f"{self._name()}~notes"
        self._sink.prepare(Opening(spark, TABLE, name, connection, self.pipeline.delivery))
        # Their number only has to grow: marks of earlier notes must not hide these.
        number = time.time_ns() // 1_000_000
        self._sink.write(Batch(rows, name, 0, number, connection, delivery=self.pipeline.delivery))

    def _name(self) -> str:
        return dead_letters_of(self.pipeline.name)

    def _spark(self) -> SparkSession:
        return spark_session(
            self.pipeline.spark if "spark" in self.pipeline.model_fields_set else None
        )


def _same_letter(note: DeadLetter, stage: str, number: int) -> DeadLetter:
    about = note.about._replace(replay=number)
    text = msgspec.json.encode(about).decode()
    return msgspec.structs.replace(note, stage=stage, error=text, value=None)


def _as_row(letter: DeadLetter) -> tuple[Any, ...]:
    told = msgspec.structs.asdict(letter)
    told["headers"] = [{"key": key, "value": value} for key, value in letter.headers]
    return tuple(told[name] for name in TABLE.names)
