"""Which records of the source each task of a plan reads, where every task reads its own partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from penstock.pipeline.source_log import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KAFKA = "org.apache.spark.sql.kafka010.KafkaBatchInputPartition"


def spans_of(rows: DataFrame) -> list[Span] | None:
    """Return what each task reads, in the order of the tasks.

    None where a task's rows may come from more than one partition of the source (a shuffle, a join of
    two streams), or a partition goes to more than one task: then there is one scope for the batch.
    """
    executed: Any = rows._jdf.queryExecution()
    if "Adaptive" in executed.executedPlan().getClass().getSimpleName():
        return None  # there is a shuffle, and asking for its tasks would run it
    try:
        scan = _scan(executed.toRdd())
        spans = scan and [_span(task.inputPartitions()) for task in scan.partitions()]
    except Py4JError:
        return None  # not a plan that we know
    if not spans or None in spans:
        return None
    partitions = {(span.topic, span.partition) for span in spans}
    return spans if len(partitions) == len(spans) else None


def _scan(data: Any) -> Any | None:
    """Follow the plan to the scan of the source, if each task depends on exactly one task before."""
    while data.getClass().getSimpleName() != "DataSourceRDD":
        before = data.dependencies()
        if before.length() != 1:
            return None
        only = before.head()
        if only.getClass().getSimpleName() != "OneToOneDependency":
            return None
        data = only.rdd()
    return data


def _span(inputs: Any) -> Span | None:
    if inputs.length() != 1 or inputs.head().getClass().getName() != _KAFKA:
        return None
    reads = inputs.head().offsetRange()
    place = reads.topicPartition()
    return Span(place.topic(), place.partition(), reads.fromOffset(), reads.untilOffset())
