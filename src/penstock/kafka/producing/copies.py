"""Records of another cluster on their way into this one: as they came, without columns in between."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from operator import itemgetter
from typing import Any

from confluent_kafka import Message

# librdkafka takes 0 for "now": the first millisecond of 1970 is as near as it gets.
_FIRST = 1


class Copies:
    """Messages that a consumer returned, to be produced with their partition, key, time and headers."""

    def __init__(self, messages: list[Message], partition: int) -> None:
        self._messages = messages
        self._partition = partition

    @property
    def num_rows(self) -> int:
        """Return how many they are."""
        return len(self._messages)

    def messages(self, topic: str) -> Iterable[tuple[Any, ...]]:
        """Return the arguments of `produce` for each."""
        messages, nothing = self._messages, repeat(None)
        times = [*map(itemgetter(1), map(Message.timestamp, messages))]
        if 0 in times:
            times = [time or _FIRST for time in times]
        return zip(
            repeat(topic),
            map(Message.value, messages),
            map(Message.key, messages),
            repeat(self._partition),
            nothing,
            nothing,
            times,
            map(Message.headers, messages),
        )
