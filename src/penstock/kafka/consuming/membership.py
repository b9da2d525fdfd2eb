"""What a consumer reads: topics that it shares with its group, or partitions that were assigned to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition

from penstock.errors import ConfigError
from penstock.kafka.consuming.buffer import Buffer
from penstock.kafka.consuming.consumer_client import ConsumerClient
from penstock.kafka.handle import Partition, is_in_callback
from penstock.kafka.partitions import offsets_of, places_of
from penstock.retry import wait_for

if TYPE_CHECKING:
    from penstock.kafka.consuming.consumer import Consumer

OnAssigned = Callable[["Consumer", list[Partition]], "Mapping[Partition, int] | None"]
"""Called with new partitions; may return the offsets to begin at."""
OnRevoked = Callable[["Consumer", list[Partition]], None]
"""Called with partitions that go: the last chance to commit, or, where they are lost, too late for it."""
# How long the call-backs of a revocation may take to come, in seconds.
_REVOKING = 5.0
Topics = str | re.Pattern[str] | Iterable[str]


class Membership:
    """The subscription and the assignment of one consumer.

    Two may stop the fetching from a partition: the caller (`pause`), and the queues where they are full
    (`hold`). librdkafka knows one pause only, and keeps it over a rebalance: it is ended when neither of
    the two needs it any more.
    """

    def __init__(self, client: ConsumerClient, buffer: Buffer) -> None:
        self.subscription: Sequence[str] = ()
        self.held: frozenset[Partition] = frozenset()
        self._paused: frozenset[Partition] = frozenset()
        self._client = client
        self._buffer = buffer

    def subscribe(self, topics: Topics, rebalance: Rebalance) -> None:
        """Join the group for these topics."""
        self._client.require_group("subscriptions")
        names = _topic_names(topics)
        run = self._client.callbacks.run
        with self._client.translated(f"subscribing to {', '.join(names)}"):
            self._client.raw.subscribe(
                names,
                on_assign=partial(run, rebalance.assigned),
                on_revoke=partial(run, rebalance.revoked),
                on_lost=partial(run, rebalance.lost),
            )
        self.subscription = names

    def unsubscribe(self) -> None:
        """End a subscription, and an assignment."""
        self._buffer.store_delivered()
        self._client.call("unsubscribing", lambda raw: raw.unsubscribe())
        if self.subscription and not is_in_callback():
            # The call-back of a revocation that waits would end a later assignment, or never return
            # once the consumer is being closed.
            wait_for(self._is_revoked, within=_REVOKING, every=0.01)
        self._client.call("unsubscribing", lambda raw: raw.unassign())
        self.subscription = ()
        self._buffer.clear()

    def _is_revoked(self) -> bool:
        """Serve the call-backs that wait, and drop the records that wait with them."""
        with self._client.translated("unsubscribing"):
            self._client.raw.consume(1000, 0)
        return not self.assigned_at()

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read exactly these partitions."""
        places = offsets_of(offsets)
        self._buffer.store_delivered()
        self._buffer.clear()
        self._client.call("assigning partitions", lambda raw: raw.assign(places))

    def unassign(self) -> None:
        """Return the partitions."""
        self._buffer.store_delivered()
        self._client.call("returning partitions", lambda raw: raw.unassign())
        self._buffer.clear()

    def assigned_at(self) -> dict[Partition, int]:
        """Return the partitions and the offsets that they were assigned with."""
        places = self._client.call("reading the assignment", lambda raw: raw.assignment())
        return {(place.topic, place.partition): place.offset for place in places}

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions; what waits of them is fetched again later."""
        places = places_of(partitions)
        with self._client.translated("pausing partitions"):
            self._buffer.put_back(places)
            self._client.raw.pause(places)
        self._paused |= _named(places)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again: at once, or when there is room in their queue."""
        named = _named(places_of(partitions))
        self._fetch_again(named - self.held)
        self._paused -= named

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and keep what waits of them."""
        places = places_of(partitions)
        with self._client.translated("pausing partitions"):
            self._client.raw.pause(places)
        self.held |= _named(places)

    def release(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again, but for those that the caller paused."""
        named = frozenset(partitions)
        if go := named - self._paused:
            self._fetch_again(go)
        self.held -= named

    def _fetch_again(self, partitions: Iterable[Partition]) -> None:
        with self._client.translated("resuming partitions"):
            self._client.raw.resume(places_of(partitions))


@dataclass(frozen=True, kw_only=True)
class Rebalance:
    """The three callbacks of one subscription, as librdkafka calls them."""

    consumer: Consumer
    client: ConsumerClient
    buffer: Buffer
    on_assigned: OnAssigned | None
    on_revoked: OnRevoked | None
    on_lost: OnRevoked | None

    def assigned(self, raw: Any, partitions: list[TopicPartition]) -> None:
        """Take partitions in, at the offsets that the user's callback returns."""
        self.buffer.rebalanced("Assigned", partitions)
        if starts := self._run(self.on_assigned, partitions):
            for place in partitions:
                place.offset = starts.get((place.topic, place.partition), place.offset)
            take = raw.incremental_assign if self._is_cooperative() else raw.assign
            with self.client.translated("beginning at the offsets of on_assigned"):
                take(partitions)

    def revoked(self, _raw: Any, partitions: list[TopicPartition]) -> None:
        """Give partitions to another member."""
        self._run(self.on_revoked, partitions)
        self.buffer.rebalanced("Revoked", partitions)

    def lost(self, _raw: Any, partitions: list[TopicPartition]) -> None:
        """Forget partitions that are gone already: this member was away for too long."""
        self._run(self.on_lost, partitions)
        self.buffer.rebalanced("Lost", partitions)

    def _run(self, callback: Callable[..., Any] | None, partitions: list[TopicPartition]) -> Any:
        if callback is None:
            return None
        names = [(place.topic, place.partition) for place in partitions]
        return self.client.callbacks.run(callback, self.consumer, names)

    def _is_cooperative(self) -> bool:
        """Return whether partitions come and go one by one, and not all at once."""
        get = self.client.handle.get
        strategy = str(get("partition.assignment.strategy", ""))
        return "cooperative-sticky" in strategy or get("group.protocol") == "consumer"


def _named(places: Iterable[TopicPartition]) -> frozenset[Partition]:
    return frozenset((place.topic, place.partition) for place in places)


def _topic_names(topics: Topics) -> list[str]:
    if isinstance(topics, re.Pattern):
        if topics.flags & ~re.UNICODE:
            raise ConfigError(
                f"the flags of {topics!r} are not allowed: librdkafka reads the pattern, without them"
            )
        return [f"^({topics.pattern.removeprefix('^').removesuffix('$')})$"]
    single = isinstance(topics, str) or not isinstance(topics, Iterable)
    names: list[Any] = [topics] if single else list(topics)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            f"topics {topics!r} are not allowed; allowed: a name, a list of names, or a pattern"
        )
    return names
