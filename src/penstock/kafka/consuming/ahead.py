"""What a consumer took from librdkafka and nobody was given yet: never lost, and never committed.

A poll may end half way (a wakeup, an error, a partition that goes to another member) with part of its
batch in hand, and the asyncio consumer reads ahead. For librdkafka those records are done with.
"""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Message

from penstock.kafka.handle import Partition


class Ahead:
    """Messages that wait to be handed out, oldest first.

    >>> ahead = Ahead()
    >>> ahead.messages += [Message("t", 0, 5), Message("t", 0, 6), Message("t", 1, 3)]
    >>> [message.offset() for message in ahead.hand_out(1)]
    [5]
    >>> ahead.starts()
    {('t', 1): 3, ('t', 0): 6}
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def hand_out(self, most: int) -> list[Message]:
        """The oldest ones; they no longer wait."""
        found = self.messages
        if len(found) <= most:
            self.messages = []
            return found
        self.messages = found[most:]
        return found[:most]

    def starts(self) -> dict[Partition, int]:
        """The first offset that waits, for each partition that has one."""
        return {place_of(each): int(each.offset() or 0) for each in reversed(self.messages)}

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Forget partitions: another member reads them now, or this one does once more."""
        gone = set(partitions)
        # In place: a poll that is under way looks at this very list.
        self.messages[:] = [each for each in self.messages if place_of(each) not in gone]


class Handed:
    """How far records were handed out: that, and not what librdkafka gave, may be committed."""

    def __init__(self) -> None:
        self._next: dict[Partition, int] = {}

    def note(self, messages: Iterable[Message]) -> None:
        """These were handed out."""
        for message in messages:
            self._next[place_of(message)] = int(message.offset() or 0) + 1

    def take(self) -> dict[Partition, int]:
        """The offset behind the last one, for each partition that has one since the last time."""
        taken, self._next = self._next, {}
        return taken


def place_of(message: Message) -> Partition:
    """The partition of a message."""
    return str(message.topic()), int(message.partition() or 0)
