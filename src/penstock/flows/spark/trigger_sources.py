"""Which triggers run, and how: a new one is a class (`TriggerSource`) and a line in `_SOURCES`."""

from __future__ import annotations

from typing import Any, cast

from penstock.config import Connection
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.triggers import KafkaTrigger, trigger_name
from penstock.flows.listener.http_trigger import HttpTriggerSource
from penstock.flows.live.kafka_publisher import connection_of
from penstock.flows.spark.import_triggers import (
    FileTriggerSource,
    JmsTriggerSource,
    RabbitMqTriggerSource,
    TimerTriggerSource,
)
from penstock.flows.spark.trigger_source import TriggerSource

_START = {"newest": "latest", "latest": "latest", "oldest": "earliest"}
_DELIVERY = {"after-success": "at-least-once", "at-once": "at-most-once"}


class KafkaTriggerSource(TriggerSource):
    """Topics, read by the pipeline itself."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._trigger = cast(KafkaTrigger, flow.trigger)
        self.columns = self._trigger.metadata
        # As many tasks as consumers: each reads its partitions in their order.
        self.tasks = self._trigger.consumers

    def source(self) -> Any:
        """Return the topics, or a pattern where one of them is one."""
        trigger = self._trigger
        start = {"start": _START[trigger.advanced.initial_offset]}
        patterns = [topic for topic in trigger.topics if topic.startswith("^")]
        if not patterns:
            return {"kafka": {"topics": list(trigger.topics), **start}}
        names = (topic for topic in trigger.topics if topic not in patterns)
        plain = [f"^{topic.replace('.', '[.]')}$" for topic in names]
        return {
            "kafka": {"pattern": "|".join(f"(?:{each})" for each in [*patterns, *plain]), **start}
        }

    def connection(self) -> Connection | None:
        """Return the trigger's own cluster."""
        return connection_of(self._trigger.connection)

    def placed(self, connection: Connection) -> Connection:
        """Return the connection with the options of the trigger; its own settings precede defaults."""
        advanced = self._trigger.advanced
        settings = {**advanced.defaults(), **connection.to_config(), **advanced.given()}
        return Connection.from_config(settings)

    def options(self) -> dict[str, Any]:
        """Return the group, and when its offsets are committed."""
        trigger = self._trigger
        return {"group": trigger.group, "delivery": _DELIVERY[trigger.advanced.confirm]}


_SOURCES: dict[str, type[TriggerSource]] = {
    "kafka": KafkaTriggerSource,
    "http": HttpTriggerSource,
    "timer": TimerTriggerSource,
    "rabbitmq": RabbitMqTriggerSource,
    "jms": JmsTriggerSource,
    "file": FileTriggerSource,
}
"""All triggers, by their names."""


def trigger_source(flow: Flow) -> TriggerSource:
    """Return how the trigger of a flow is read."""
    return _SOURCES[trigger_name(flow.trigger)](flow)
