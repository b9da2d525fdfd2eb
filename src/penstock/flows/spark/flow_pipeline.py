"""A flow as a pipeline: its trigger is the source, its steps are one step, the sink gets nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic import ConfigDict, Field

from penstock.config import Connection, find_connection
from penstock.error_frame import in_worker
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import check_consumers
from penstock.flows.definition.triggers import KafkaTrigger
from penstock.flows.live.kafka_publisher import connection_of
from penstock.flows.spark.trigger_sources import trigger_source
from penstock.pipeline import Pipeline, Step
from penstock.pipeline.importing import Import
from penstock.pipeline.names import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FlowStep(Step):
    """The steps of a flow, over the records of a pipeline with the decode `raw`.

    At-least-once: a batch that is repeated after a crash publishes its messages again.
    """

    name = "flow"
    model_config = ConfigDict(arbitrary_types_allowed=True)

    flow: Flow = Field(description="The flow.")
    connection: Connection = Field(description="The cluster of operations that name none.")
    source: Connection = Field(description="The cluster of the trigger, and of the dead letters.")
    run: str = Field(
        default_factory=lambda: uuid4().hex,
        description="What distinguishes the clients of this run from those of an earlier one.",
    )

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the outcome of each record."""
        from penstock.flows.spark.record_batches import RESULT, FlowBatches  # noqa: PLC0415 - an extra

        batches = FlowBatches(self.flow, self.connection, self.source, self.run)
        trigger = trigger_source(self.flow)
        # Time and key as the dead letters of pipelines have them.
        names = ("value", "topic", "partition", "offset", "timestamp", "key", *trigger.columns)
        needed = rows.select(*dict.fromkeys(names))
        return map_in_arrow(needed.coalesce(trigger.tasks), in_worker(batches, "step"), RESULT)


def flow_pipeline(flow: Flow, connection: Connection | None = None, **options: Any) -> Pipeline:
    """Return the pipeline that runs a flow; `connection` instead of those of the definition."""
    trigger = trigger_source(flow)
    own = connection or connection_of(flow.connection)
    cluster = connection or trigger.connection() or own or find_connection(None)
    given = {
        "name": flow.name,
        "connection": trigger.placed(cluster),
        "source": _bounded(trigger.source(), flow.batch_size),
        "decode": "raw",
        "steps": [FlowStep(flow=flow, connection=own or cluster, source=cluster)],
        "sink": "discard",
        "dead_letters": flow.dead_letter_topic,
        **trigger.options(),
    }
    return Pipeline(**{**given, **options})


def _bounded(source: Any, size: int) -> Any:
    """Return the source of a trigger, with at most this many records in a batch."""
    if isinstance(source, Import):
        return source.with_batches_of(size)
    return {name: {**options, "max_records_per_batch": size} for name, options in source.items()}


def flow_step(pipeline: Pipeline) -> FlowStep | None:
    """Return the step of a pipeline that is a flow; None where it is another pipeline."""
    steps = [step for step in pipeline.steps if isinstance(step, FlowStep)]
    return steps[0] if steps else None


def require_partitions(flow: Flow, pipeline: Pipeline) -> None:
    """Raise where the flow has more consumers than the partitions of its topics allow."""
    trigger = flow.trigger
    if not isinstance(trigger, KafkaTrigger) or trigger.consumers == 1:
        return
    source = pipeline.source
    log = source.open_log(pipeline.find_connection(), pipeline.group_id)
    try:
        found = source.partitions(log, is_known=False)
    finally:
        log.close()
    check_consumers(trigger.consumers, Counter(topic for topic, _ in found))
