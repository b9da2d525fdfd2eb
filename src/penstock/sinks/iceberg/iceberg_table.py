"""One Iceberg table: snapshots that are staged under a batch's name, then published once."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.errors import TransientError
from penstock.pipeline import Batch, LastWrite, Mark, is_repetition
from penstock.pipeline.computed_rows import computed
from penstock.pipeline.java_errors import causes_of
from penstock.sinks.fencing import claimed, covered_text, write_of
from penstock.sinks.iceberg.partitions import Partition
from penstock.sinks.lake.lake_rows import nullable
from penstock.sinks.lake.lake_table import LakeTable

# Each commit writes a file of metadata; the ones of long ago are of no use to anybody.
_TIDY = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_STAGING = "write.wap.enabled"
_STAGED, _PUBLISHED = "wap.id", "published-wap-id"
_CAME_FIRST = "org.apache.iceberg.exceptions.CommitFailedException"
_ATTEMPTS = 20


class IcebergTable(LakeTable):
    """An Iceberg table in a catalog of the session."""

    def exists(self) -> bool:
        """Return whether the catalog has it."""
        return self.spark.catalog.tableExists(self.sql)

    def create(
        self, schema: StructType, partition_by: Sequence[str], properties: dict[str, str]
    ) -> None:
        """Make the table, empty."""
        divided = ", ".join(Partition.read(by).sql() for by in partition_by)
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.sql} ({nullable(schema).toDDL()}) USING iceberg"
            + (f" PARTITIONED BY ({divided})" if divided else "")
        )
        update = self._loaded().updateProperties()
        for name, value in (_TIDY | properties).items():
            update.set(name, value)
        update.commit()

    def partitions(self) -> list[str]:
        """Return what divides the table."""
        spec = self._loaded().spec()
        name_of = spec.schema().findColumnName
        by = [
            Partition.of(str(each.transform()), name_of(each.sourceId())) for each in spec.fields()
        ]
        return list(map(str, by))

    def fit(self, rows: DataFrame) -> DataFrame:
        """Return rows with every column of the table: null where they have none."""
        fitting = super().fit(rows)
        given = set(fitting.columns)
        missing = [field for field in self.schema().fields if field.name not in given]
        return fitting.withColumns({x.name: f.lit(None).cast(x.dataType) for x in missing})

    def newest(self, pipeline: str) -> Mark | None:
        """Return the newest mark on the way back from the table's head, or the one that was kept."""
        return _newest(self._loaded(), pipeline)

    def last_write(self, pipeline: str) -> LastWrite | None:
        """Return the newest mark, with the ranges that are kept as a property next to it."""
        return _last_write(self._loaded(), pipeline)

    @contextmanager
    def marked(self, batch: Batch) -> Iterator[None]:
        """Stage the write inside under the batch's name; publish it when it is complete."""
        self._allow_staging()
        with self.setting("spark.wap.id", batch.label):
            yield
        self._committed(lambda changes: _publish(changes, batch))

    def append(self, rows: DataFrame) -> None:
        """Add rows.

        Where the table has an order Spark reads the rows first for a sample, and would count them twice.
        """
        if not self._is_ordered():
            rows.writeTo(self.sql).append()
            return
        with computed(rows) as kept:
            kept.writeTo(self.sql).append()

    def _is_ordered(self) -> bool:
        table = self._loaded()
        by_range = table.properties().get("write.distribution-mode") == "range"
        return by_range or bool(table.sortOrder().isSorted())

    def compact(self, keep: float | None) -> None:
        """Join small files; remove snapshots that are older, and what only they need."""
        table = self._loaded()
        actions = self.jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.session)
        actions.rewriteDataFiles(table).execute()
        if keep is not None:
            before = int((time.time() - keep) * 1000)
            actions.expireSnapshots(self._loaded()).expireOlderThan(before).execute()

    def claim(self, pipeline: str, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Commit the epoch as a property of the table."""
        return self._committed(lambda changes: _claim(changes, pipeline, epoch, continues))

    def _committed(self, change: Callable[[Any], LastWrite | None]) -> LastWrite | None:
        """Commit what `change` does to the newest version of the table, if that still is the newest.

        What it reads is therefore true at the moment of the commit: else it is run again on the
        version that came first.
        """
        for _ in range(_ATTEMPTS):
            changes = self._loaded().newTransaction()
            # Iceberg applies other changes again to whatever is newest; a change of the schema, even to
            # the same one, is never applied to another version than the one that it was made for.
            changes.updateSchema().commit()
            done = change(changes)
            try:
                changes.commitTransaction()
            except Py4JJavaError as error:
                if not any(cause.is_a(_CAME_FIRST) for cause in causes_of(error)):
                    raise
            else:
                return done
        raise TransientError(f"other writers changed {self.named} {_ATTEMPTS} times in a row")

    def _allow_staging(self) -> None:
        table = self._loaded()
        if table.properties().get(_STAGING) != "true":
            table.updateProperties().set(_STAGING, "true").commit()

    def _loaded(self) -> Any:
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session, self.sql)


def _claim(changes: Any, pipeline: str, epoch: int, continues: Container[int]) -> LastWrite | None:
    last = _last_write(changes.table(), pipeline)
    _set(changes, pipeline, claimed(last, epoch, pipeline, continues))
    return last


def _publish(changes: Any, batch: Batch) -> None:
    """Make the staged snapshot part of the table, together with the batch's mark and ranges.

    An append is published by Iceberg on top of whatever is newest. A merge is published only onto
    the very snapshot that it was made from.
    """
    table = changes.table()
    if is_repetition(_newest(table, batch.pipeline), batch.mark, batch.pipeline):
        return
    staged = next(s for s in _backwards(table) if s.summary().get(_STAGED) == batch.label)
    if staged.schemaId() != table.schema().schemaId():
        raise TransientError("the table's columns were changed while the batch was written")
    changes.manageSnapshots().cherrypick(staged.snapshotId()).commit()
    _set(changes, batch.pipeline, batch.as_write)


def _set(changes: Any, pipeline: str, write: LastWrite) -> None:
    """Store the mark and the ranges as properties: snapshots are removed, properties are not."""
    label = "~".join((pipeline, *map(str, write.mark)))
    update = changes.updateProperties().set(_property(pipeline), label)
    update.set(_ranges_of(pipeline), f"{label} {covered_text(write)}").commit()


def _last_write(table: Any, pipeline: str) -> LastWrite | None:
    if (mark := _newest(table, pipeline)) is None:
        return None
    # Ranges count with the mark that they were stored with: an older release stores marks alone.
    label, _, ranges = (table.properties().get(_ranges_of(pipeline)) or "").partition(" ")
    return write_of(mark, ranges if _mark(label, pipeline) == mark else None)


def _newest(table: Any, pipeline: str) -> Mark | None:
    kept = _mark(table.properties().get(_property(pipeline)), pipeline)
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        for name in (_PUBLISHED, _STAGED):
            if mark := _mark(summary.get(name), pipeline):
                return max(mark, kept) if kept else mark
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return kept


def _backwards(table: Any) -> Iterator[Any]:
    """Yield the table's snapshots, the newest first: reading each is a call to Java."""
    snapshots = table.snapshots()
    return (snapshots[at] for at in range(snapshots.size() - 1, -1, -1))


def _property(pipeline: str) -> str:
    return f"penstock.mark.{pipeline}"


def _ranges_of(pipeline: str) -> str:
    return f"penstock.ranges.{pipeline}"


def _mark(label: str | None, pipeline: str) -> Mark | None:
    """Read a batch's name, if it is one of this pipeline.

    >>> _mark("trades~0~7~2", "trades"), _mark("other~0~7~2", "trades"), _mark(None, "trades")
    (Mark(epoch=0, batch=7, part=2), None, None)
    """
    owner, *numbers = (label or "").rsplit("~", 3)
    if owner != pipeline or len(numbers) != 3:
        return None
    return Mark(*map(int, numbers))
