"""One Iceberg table: snapshots that are staged under a batch's name, then published once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from penstock.pipeline import Batch, Mark
from penstock.sinks.iceberg.partitions import Partition
from penstock.sinks.lake.rows import filled, fitted, nullable
from penstock.sinks.lake.sessions import setting
from penstock.sinks.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# Each commit writes a file of metadata; the ones of long ago are of no use to anybody.
_TIDY = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_STAGING = "write.wap.enabled"
_STAGED, _PUBLISHED = "wap.id", "published-wap-id"


class IcebergTable(LakeTable):
    """An Iceberg table in a catalog of the session."""

    def exists(self) -> bool:
        """Whether the catalog has it."""
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
        return [
            str(
                Partition.of(str(field.transform()), spec.schema().findColumnName(field.sourceId()))
            )
            for field in spec.fields()
        ]

    def fit(self, rows: DataFrame) -> DataFrame:
        """Return rows with every column of the table."""
        schema = self.schema()
        return filled(fitted(rows, schema), schema)

    def newest(self, pipeline: str) -> Mark | None:
        """Return the newest mark on the way back from the table's head, or the one that was kept."""
        return _newest(self._loaded(), pipeline)

    @contextmanager
    def marked(self, batch: Batch) -> Iterator[None]:
        """Stage the write inside under the batch's name; publish it when it is whole."""
        self._allow_staging()
        with setting(self.spark, "spark.wap.id", batch.label):
            yield
        self._publish(batch)

    def append(self, rows: DataFrame) -> None:
        """Add rows."""
        rows.writeTo(self.sql).append()

    def compact(self, keep: float | None) -> None:
        """Join small files; remove snapshots that are older, and what only they need."""
        table = self._loaded()
        actions = self.jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.session)
        actions.rewriteDataFiles(table).execute()
        if keep is not None:
            before = int((time.time() - keep) * 1000)
            actions.expireSnapshots(self._loaded()).expireOlderThan(before).execute()

    def remember(self, batch: Batch) -> None:
        """Keep the mark as a property: a snapshot may be removed."""
        update = self._loaded().updateProperties()
        update.set(_property(batch.pipeline), batch.label).commit()

    def _publish(self, batch: Batch) -> None:
        """Make the staged snapshot part of the table.

        An append is published by Iceberg on top of whatever is newest, unless its name is there. A merge
        is published only onto the very snapshot that it was made from, so what is known of that
        snapshot's history cannot have changed.
        """
        table = self._loaded()
        newest = _newest(table, batch.pipeline)
        if newest is not None and newest >= batch.mark:
            return
        staged = next(s for s in _backwards(table) if s.summary().get(_STAGED) == batch.label)
        try:
            table.manageSnapshots().cherrypick(staged.snapshotId()).commit()
        except Py4JJavaError as error:
            if "DuplicateWAPCommitException" not in str(error.java_exception):
                raise

    def _allow_staging(self) -> None:
        table = self._loaded()
        if table.properties().get(_STAGING) != "true":
            table.updateProperties().set(_STAGING, "true").commit()

    def _loaded(self) -> Any:
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session, self.sql)


def _newest(table: Any, pipeline: str) -> Mark | None:
    kept = _mark(table.properties().get(_property(pipeline)), pipeline)
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        for name in (_PUBLISHED, _STAGED):
            if found := _mark(summary.get(name), pipeline):
                return max(found, kept) if kept else found
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return kept


def _backwards(table: Any) -> Iterator[Any]:
    """The table's snapshots, the newest first: each look at one is a call to Java."""
    snapshots = table.snapshots()
    return (snapshots[at] for at in range(snapshots.size() - 1, -1, -1))


def _property(pipeline: str) -> str:
    return f"penstock.mark.{pipeline}"


def _mark(label: str | None, pipeline: str) -> Mark | None:
    """Read a batch's name, if it is one of this pipeline.

    >>> _mark("trades~0~7~2", "trades"), _mark("other~0~7~2", "trades"), _mark(None, "trades")
    (Mark(epoch=0, batch=7, part=2), None, None)
    """
    owner, *numbers = (label or "").rsplit("~", 3)
    if owner != pipeline or len(numbers) != 3:
        return None
    return Mark(*map(int, numbers))
