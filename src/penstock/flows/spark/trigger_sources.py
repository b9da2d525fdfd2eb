"""How each trigger is read: the source of the flow's pipeline, and the attributes of its messages.

One class for each trigger; a new trigger is one more line in `_SOURCES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.kafka_options import settings_of
from penstock.flows.definition.triggers import HttpTrigger, KafkaTrigger, trigger_name
from penstock.flows.listener.listener_source import FlowListenerSource
from penstock.flows.listener.reply import reply_records
from penstock.flows.listener.request_record import attributes_of
from penstock.flows.live.kafka_publisher import connection_of
from penstock.flows.running.flow_run import RunResult
from penstock.flows.running.systems import PublishRequest

_START = {"newest": "latest", "latest": "latest", "oldest": "earliest"}
_DELIVERY = {"after-success": "at-least-once", "at-once": "at-most-once"}


class TriggerSource(ABC):
    """A trigger as the engine reads it."""

    # How many tasks run the steps: one keeps the order of all messages.
    tasks: int = 1
    # The columns of a record that the attributes are made of, next to topic, partition and offset.
    columns: tuple[str, ...] = ()

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    @abstractmethod
    def source(self) -> Any:
        """Return the source of the pipeline: topics, or an import into `<flow>.in`."""

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of a record's message; `record` has the `columns`."""
        return dict(record)

    def replies(self, result: RunResult) -> list[PublishRequest]:  # noqa: ARG002 - most wait for none
        """Return the records that bring the outcomes to those who wait for them."""
        return []

    def connection(self) -> Connection | None:
        """Return the cluster that the trigger names, None where it names none."""
        return None

    def placed(self, connection: Connection) -> Connection:
        """Return the connection of the pipeline, with settings that the trigger gives."""
        return connection

    def options(self) -> dict[str, Any]:
        """Return more options of the pipeline: its group, its delivery."""
        return {}


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


class HttpTriggerSource(TriggerSource):
    """Requests that a listener of the pipeline's process writes to `<flow>.in`."""

    columns = ("headers",)

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._trigger = cast(HttpTrigger, flow.trigger)

    def source(self) -> Any:
        """Return the listener."""
        return FlowListenerSource(flow=self.flow.name, trigger=self._trigger)

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return id, method, path, query and headers of the request."""
        return attributes_of(record["headers"])

    def replies(self, result: RunResult) -> list[PublishRequest]:
        """Return the result of each request, where requests wait for it."""
        return reply_records(self.flow.name, self._trigger, result)


_SOURCES: dict[str, type[TriggerSource]] = {
    "kafka": KafkaTriggerSource,
    "http": HttpTriggerSource,
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
