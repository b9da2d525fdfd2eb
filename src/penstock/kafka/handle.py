"""What every librdkafka client of ours shares: silence on the terminal, and a memory for errors."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

from confluent_kafka import KafkaError

from penstock.config import Connection
from penstock.kafka.errors import translated

Role = Literal["producer", "consumer", "admin"]
Partition = tuple[str, int]

logger = logging.getLogger("penstock.librdkafka")


class QuietLogger:
    """Takes librdkafka's log lines, which would go to the terminal, into our log at debug level.

    What matters in them reaches the user as an error; the lines themselves are for bug reports.
    """

    def log(self, _level: int, message: str, *args: object) -> None:
        """Called from librdkafka, with its own idea of the level."""
        logger.debug(message, *args)


class Handle:
    """The settings of one client, and what its connection reported lately."""

    def __init__(
        self,
        connection: Connection,
        role: Role,
        defaults: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        self.brokers = connection.brokers
        self.seen: deque[KafkaError] = deque(maxlen=20)
        self._settings = {**(defaults or {}), **connection.librdkafka(role, **overrides)}

    def settings(self) -> dict[str, Any]:
        """What a confluent_kafka client is made with."""
        return {**self._settings, "error_cb": self.seen.append, "logger": QuietLogger()}

    def translated(self, doing: str) -> AbstractContextManager[None]:
        """Run a block so that librdkafka's errors come out as ours, named after `doing`."""
        return translated(doing, self.brokers, self.seen)
