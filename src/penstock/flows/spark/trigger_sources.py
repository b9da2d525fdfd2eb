"""Which triggers run, and how: a new one is a class (`TriggerSource`) and a line in `_SOURCES`."""

from __future__ import annotations

from typing import Any, cast

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import settings_of
from penstock.flows.definition.triggers import KafkaTrigger, trigger_name
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
        """Return the connection with the options that are given: the engine has its own defaults."""
        advanced = self._trigger.advanced
        keys = {key for key, _ in settings_of(type(advanced).model_construct())}
        given = {
            key
            for name in advanced.model_fields_set
            for key in keys
            if (type(advanced).model_fields[name].json_schema_extra or {}).get("key") == key  # type: ignore[union-attr]
        }
        settings = {key: value for key, value in advanced.settings().items() if key in given}
        if not settings:
            return connection
        return Connection.from_config({**connection.to_config(), **settings})

    def options(self) -> dict[str, Any]:
        """Return the group, and when its offsets are committed."""
        trigger = self._trigger
        return {"group": trigger.group, "delivery": _DELIVERY[trigger.advanced.confirm]}


_SOURCES: dict[str, type[TriggerSource]] = {
    "kafka": KafkaTriggerSource,
    "timer": TimerTriggerSource,
    "rabbitmq": RabbitMqTriggerSource,
    "jms": JmsTriggerSource,
    "file": FileTriggerSource,
}
"""The triggers that run, by their names."""


def trigger_source(flow: Flow) -> TriggerSource:
    """Return how the trigger of a flow is read."""
    name = trigger_name(flow.trigger)
    if name not in _SOURCES:
        raise ConfigError(
            f"a flow with the trigger {name!r} cannot be run yet; flows with these can: "
            f"{', '.join(_SOURCES)}"
        )
    return _SOURCES[name](flow)
