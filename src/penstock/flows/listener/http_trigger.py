"""The trigger `http` as the engine reads it: a listener that fills `<flow>.in`, and results back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from penstock.flows.definition.triggers import HttpTrigger
from penstock.flows.listener.listener_source import FlowListenerSource
from penstock.flows.listener.reply import reply_records
from penstock.flows.listener.request_record import attributes_of
from penstock.flows.running.flow_run import RunResult
from penstock.flows.running.systems import PublishRequest
from penstock.flows.spark.trigger_source import TriggerSource


class HttpTriggerSource(TriggerSource):
    """Requests that a listener of the pipeline's process writes to `<flow>.in`."""

    columns = ("headers",)

    def source(self) -> Any:
        """Return the listener."""
        made = FlowListenerSource(flow=self.flow.name, trigger=self._trigger)
        return made.read_with_headers()

    def attributes(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return id, method, path, query and headers of the request."""
        return attributes_of(record["headers"])

    def replies(self, result: RunResult) -> list[PublishRequest]:
        """Return the result of each request, where requests wait for it."""
        return reply_records(self.flow.name, self._trigger, result)

    @property
    def _trigger(self) -> HttpTrigger:
        return cast(HttpTrigger, self.flow.trigger)
