"""Runs dead letters through their pipeline once more: decode, steps and sink, as if they came now.

A replay is written down before it begins and after it is done, and has a number that the sink keeps as
its mark: one that a kill cut short is finished first, and an exact sink has no row of it twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as f

from penstock.config import Connection, find_connection
from penstock.engine.letters.box import Letterbox
from penstock.engine.letters.letter import DeadLetter
from penstock.engine.places import locked, state_folder
from penstock.engine.session import spark_session
from penstock.engine.shipping import shipped
from penstock.engine.splitting import Written
from penstock.engine.stateful.plan import plan_of
from penstock.engine.stream import RECORD, prepare_sinks, sink_schema
from penstock.engine.writing import Writing
from penstock.errors import ConfigError
from penstock.pipeline import Batch, Partition, Pipeline
from penstock.pipeline.storage import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Replayed:
    """What became of the letters of a replay."""

    letters: int = 0
    rows: int = 0
    failed_again: int = 0


def replay(
    pipeline: Pipeline, letters: Sequence[DeadLetter], values: Mapping[str, bytes] | None = None
) -> Replayed:
    """Replay letters, with other values for those whose id is in `values`; finish what was cut short."""
    _refuse_state(pipeline)
    edited = [
        msgspec.structs.replace(letter, value=(values or {}).get(letter.id, letter.value))
        for letter in letters
    ]
    with locked(f"{state_folder(pipeline)}/replays", pipeline.name):
        box = Letterbox(pipeline)
        for number, planned in box.unfinished().items():
            _run(pipeline, number, planned, box)
        if not edited:
            return Replayed()
        number, planned = box.plan(edited)
        return _run(pipeline, number, planned, box)


def _refuse_state(pipeline: Pipeline) -> None:
    if plan_of(pipeline).stream:
        raise ConfigError(
            f"{pipeline.name!r} has a step that keeps state, which only the running pipeline has: its "
            "dead letters cannot be replayed beside it; send the records to the topic again"
        )


def _run(pipeline: Pipeline, number: int, planned: list[DeadLetter], box: Letterbox) -> Replayed:
    written = _Replay(pipeline).run(number, planned)
    box.end(number, planned)
    return Replayed(len(planned), written.rows, written.failed)


class _Replay:
    def __init__(self, pipeline: Pipeline) -> None:
        self._connection: Connection = pipeline.connection or find_connection(None)
        chosen = pipeline.spark if "spark" in pipeline.model_fields_set else None
        self._spark: SparkSession = spark_session(chosen)
        self._pipeline = shipped(self._spark, pipeline)

    def run(self, number: int, planned: list[DeadLetter]) -> Written:
        rows = [_as_record(letter) for letter in planned]
        records = (
            self._spark.createDataFrame(rows, RECORD).coalesce(1).sortWithinPartitions("offset")
        )
        decoded = self._pipeline.decode.decode(records)
        schema = sink_schema(self._pipeline, self._spark)
        prepare_sinks(self._pipeline, self._spark, schema, self._connection)
        batch = Batch(
            rows=decoded,
            # A sign that no pipeline's name can have: its marks are not those of the pipeline.
            pipeline=f"{self._pipeline.name}~replay",
            epoch=0,
            id=number,
            connection=self._connection,
            ranges=_ranges(planned),
            delivery=self._pipeline.delivery,
        )
        parts = Folder(self._spark, f"{state_folder(self._pipeline)}/replays/parts")
        writing = Writing(
            self._pipeline,
            parts,
            records=lambda whole: _within(records, whole),
            part=lambda part: (_within(records, part), []),
        )
        return writing.run(batch)


def _within(records: DataFrame, part: Batch) -> DataFrame:
    """The records in a part's ranges."""
    wanted = f.lit(False)
    for (topic, partition), (start, end) in part.ranges.items():
        wanted |= (
            (f.col("topic") == topic)
            & (f.col("partition") == partition)
            & f.col("offset").between(start, end - 1)
        )
    return records.where(wanted)


def _ranges(letters: Sequence[DeadLetter]) -> dict[Partition, tuple[int, int]]:
    found: dict[Partition, tuple[int, int]] = {}
    for letter in letters:
        place = letter.topic, letter.partition
        start, end = found.get(place, (letter.offset, letter.offset + 1))
        found[place] = min(start, letter.offset), max(end, letter.offset + 1)
    return found


def _as_record(letter: DeadLetter) -> tuple[object, ...]:
    headers = [{"key": key, "value": value} for key, value in letter.headers]
    return (
        letter.key, letter.value, letter.topic, letter.partition, letter.offset,
        letter.timestamp, 0, headers,
    )  # fmt: skip
