"""A flow as a pipeline: its trigger is the source, its steps are one step, the sink gets nothing."""

from __future__ import annotations

import pickle
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from penstock.config import Connection, find_connection
from penstock.error_frame import in_worker
from penstock.errors import ConfigError
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import check_consumers
from penstock.flows.definition.triggers import KafkaTrigger, trigger_name
from penstock.flows.live.kafka_publisher import connection_of
from penstock.pipeline import Pipeline, Step
from penstock.pipeline.names import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_START = {"newest": "latest", "latest": "latest", "oldest": "earliest"}
_DELIVERY = {"after-success": "at-least-once", "at-once": "at-most-once"}


class FlowStep(Step):
    """The steps of a flow, over the records of a pipeline with the decode `raw`.

    At-least-once: a batch that is repeated after a crash publishes its messages again.
    """

    name = "flow"
    model_config = ConfigDict(arbitrary_types_allowed=True)

    flow: Flow = Field(description="The flow.")
    connection: Connection = Field(description="The cluster of operations that name none.")
    source: Connection = Field(description="The cluster of the trigger, and of the dead letters.")

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the outcome of each record."""
        from penstock.flows.spark.record_batches import RESULT, FlowBatches  # noqa: PLC0415 - an extra

        known = self.flow.name, self.flow.model_dump_json(), self.connection, self.source
        identity = sha256(pickle.dumps(known)).digest()
        batches = FlowBatches(self.flow, self.connection, self.source, identity)
        trigger = self.flow.trigger
        metadata = trigger.metadata if isinstance(trigger, KafkaTrigger) else ()
        # What the dead letters of pipelines have, too.
        names = dict.fromkeys(
            ("value", "topic", "partition", "offset", "timestamp", "key", *metadata)
        )
        needed = rows.select(*names)
        consumers = trigger.consumers if isinstance(trigger, KafkaTrigger) else 1
        # As many tasks as consumers: each reads its partitions in their order.
        return map_in_arrow(needed.coalesce(consumers), in_worker(batches, "step"), RESULT)


def flow_pipeline(flow: Flow, connection: Connection | None = None, **options: Any) -> Pipeline:
    """Return the pipeline that runs a flow; `connection` instead of those of the definition."""
    trigger = flow.trigger
    if not isinstance(trigger, KafkaTrigger):
        raise ConfigError(
            f"a flow with the trigger {trigger_name(trigger)!r} cannot be run yet; flows with 'kafka' can"
        )
    found = (
        connection
        or connection_of(trigger.connection)
        or connection_of(flow.connection)
        or find_connection(None)
    )
    given = {
        "name": flow.name,
        "connection": _with_settings(found, trigger),
        "group": trigger.group,
        "source": {"kafka": {**_topics(trigger), "start": _START[trigger.advanced.initial_offset]}},
        "decode": "raw",
        "steps": [
            FlowStep(
                flow=flow,
                connection=connection or connection_of(flow.connection) or found,
                source=found,
            )
        ],
        "sink": "discard",
        "delivery": _DELIVERY[trigger.advanced.confirm],
        "dead_letters": flow.dead_letter_topic,
    }
    return Pipeline(**{**given, **options})


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


def _topics(trigger: KafkaTrigger) -> dict[str, Any]:
    patterns = [topic for topic in trigger.topics if topic.startswith("^")]
    if not patterns:
        return {"topics": list(trigger.topics)}
    plain = [f"^{topic.replace('.', '[.]')}$" for topic in trigger.topics if topic not in patterns]
    return {"pattern": "|".join(f"(?:{each})" for each in [*patterns, *plain])}


def _with_settings(connection: Connection, trigger: KafkaTrigger) -> Connection:
    """Return the connection with the options that the definition gives: the engine has own defaults."""
    from penstock.flows.definition.kafka_options import settings_of  # noqa: PLC0415 - used once

    advanced = trigger.advanced
    keys = {key for key, _ in settings_of(type(advanced).model_construct())}
    given = {
        key
        for name in advanced.model_fields_set
        for key in keys
        if (type(advanced).model_fields[name].json_schema_extra or {}).get("key") == key  # type: ignore[union-attr]
    }
    settings = {key: value for key, value in advanced.settings().items() if key in given}
    return (
        Connection.from_config({**connection.to_config(), **settings}) if settings else connection
    )
