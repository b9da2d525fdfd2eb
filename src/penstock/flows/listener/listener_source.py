"""The trigger `http` as a source of the flow's pipeline: a listener that fills `<flow>.in`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.flows.definition.triggers import HttpTrigger
from penstock.pipeline.importing import Listener, ListeningImport

if TYPE_CHECKING:
    from penstock.config import Connection

# Asking Kafka takes 2 ms of processor time: a twentieth of a processor while nothing comes.
_WAITED_FOR = 0.05


class FlowListenerSource(ListeningImport):
    """The requests of one flow.

    A request is in the topic, on all replicas in sync, before it is answered: at-least-once.
    """

    name = "http"

    flow: str = Field(description="The flow's name.")
    trigger: HttpTrigger = Field(description="Path, method, and who may send.")

    @property
    def longest_pause(self) -> float:
        """Return a short time where clients wait for results."""
        return _WAITED_FOR if self.trigger.reply == "result" else super().longest_pause

    def topics(self) -> list[str]:
        """Return the topic of the requests."""
        return [self.topic]

    def listener(self, connection: Connection, is_full: Callable[[], bool]) -> Listener:
        """Return what listens."""
        # Only here: who reads a definition needs no client.
        from penstock.flows.listener.flow_listener import FlowListener  # noqa: PLC0415

        return FlowListener(self, connection, is_full)
