"""The dead letters of a pipeline, wherever its sink for them stores them, and what was done with them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.config import Connection
from penstock.engine.dead_letter_batch import TABLE
from penstock.engine.dead_letters.letter import DeadLetter, as_headers, from_record, from_row
from penstock.engine.dead_letters.letter_log import LetterLog, Plan
from penstock.engine.session import spark_session
from penstock.pipeline import Batch, Opening, Pipeline
from penstock.pipeline.derived_names import dead_letters_of
from penstock.pipeline.record_store import NewRecord, RecordStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DeadLetterStore", "Plan"]


class DeadLetterStore(LetterLog):
    """Reads letters and notes, and adds notes.

    A topic is read and written by the client, without Spark; a table through the sink itself.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.pipeline = pipeline
        self._sink = pipeline.dead_letter_sink

    def _load(self) -> Iterator[DeadLetter]:
        return self._from_store(store) if (store := self._store()) else self._from_table()

    def _append(self, notes: Sequence[DeadLetter]) -> None:
        if store := self._store():
            # A plan has the whole record.
            store.append(NewRecord(each.key, each.value, as_headers(each)) for each in notes)
        else:
            self._into_table(notes)

    def _connection(self) -> Connection:
        return self.pipeline.find_connection()

    def _store(self) -> RecordStore | None:
        return self._sink.record_store(self._connection())

    @staticmethod
    def _from_store(store: RecordStore) -> Iterator[DeadLetter]:
        """Read settled letters, and all notes: those that are hidden tell what other replays take."""
        for record, is_settled in store.read():
            letter = from_record(record)
            if letter and (is_settled or letter.is_note):
                yield letter

    def _from_table(self) -> Iterator[DeadLetter]:
        name = dead_letters_of(self.pipeline.name)
        with self._sink.open(Opening(self._spark(), name, self._connection())) as writer:
            rows = writer.read_back(TABLE)
            letters = [] if rows is None else rows.select(*TABLE.names).toArrow().to_pylist()
        yield from map(from_row, letters)

    def _into_table(self, notes: Sequence[DeadLetter]) -> None:
        """Append the notes; a repeated note changes nothing, so they need no mark."""
        spark, connection = self._spark(), self._connection()
        rows = spark.createDataFrame([_as_row(note) for note in notes], TABLE)
        # A unique name for each write: others may write notes, or letters, at the same time.
        name = f"{dead_letters_of(self.pipeline.name)}~notes-{time.time_ns()}"
        with self._sink.open(Opening(spark, name, connection)) as writer:
            writer.prepare(TABLE)
            writer.write(Batch(rows, name, 0, 0, connection, may_repeat=False))

    def _spark(self) -> SparkSession:
        return spark_session(self.pipeline.session_options)


def _as_row(letter: DeadLetter) -> tuple[Any, ...]:
    fields = msgspec.structs.asdict(letter)
    fields["headers"] = [{"key": key, "value": value} for key, value in letter.headers]
    return tuple(fields[name] for name in TABLE.names)
