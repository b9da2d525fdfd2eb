"""A consumer's place among others: what it reads, and how it learns of changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka.consuming.holding import Holding
from penstock.kafka.consuming.rebalance import OnAssigned, OnRevoked, Rebalance
from penstock.kafka.handle import Partition
from penstock.kafka.places import aligned, offsets_of, places_of

_COOPERATIVE = "cooperative-sticky"


class Membership(Holding):
    """The part of a consumer that says what it reads."""

    _subscription: Sequence[str] = ()

    # -- topics, shared with the group

    def subscribe(
        self,
        topics: str | re.Pattern[str] | Iterable[str],
        on_assigned: OnAssigned | None = None,
        on_revoked: OnRevoked | None = None,
        on_lost: OnRevoked | None = None,
    ) -> None:
        """Share topics with the other members of the group, instead of what was subscribed before.

        A pattern is a compiled one, which must match a name as a whole, or a text that starts with
        '^'. The callbacks get this consumer and the partitions; `on_assigned` may give back offsets to
        begin at; `on_revoked` may commit; `on_lost` is told when that would be too late.
        """
        self.require_group("subscriptions")
        names = _topic_names(topics)
        told = Rebalance(self, on_assigned, on_revoked, on_lost)  # type: ignore[arg-type]
        run = self.callbacks.run
        with self._handle.translated(f"subscribing to {', '.join(names)}"):
            self._client.subscribe(
                names,
                on_assign=partial(run, told.assigned),
                on_revoke=partial(run, told.revoked),
                on_lost=partial(run, told.lost),
            )
        self._subscription = names

    def unsubscribe(self) -> None:
        """Read nothing more: ends a subscription, and an assignment by hand too."""
        self.store_handed_out()
        with self._handle.translated("unsubscribing"):
            self._client.unsubscribe()
            self._client.unassign()
        self._subscription = ()
        self._start_over()

    @property
    def subscription(self) -> list[str]:
        """What was subscribed to; patterns start with '^'."""
        return list(self._subscription)

    # -- partitions, by hand

    def assign(
        self, topics: Mapping[Partition, int] | Any, partitions: Any = None, offsets: Any = None
    ) -> None:
        """Read exactly these partitions: a mapping to offsets, or three values or lists.

        ::

            consumer.assign({("trades", 0): 3000})
            consumer.assign("trades", 0, 3000)
            consumer.assign(["trades", "trades"], [0, 1], [3000, 0])
        """
        wanted: Mapping[Partition, int] = (
            topics if isinstance(topics, Mapping) else aligned(topics, partitions, offsets)
        )
        places = offsets_of(wanted)
        self.store_handed_out()
        self._start_over()
        with self._handle.translated("assigning partitions"):
            self._client.assign(places)

    def unassign(self) -> None:
        """Give the partitions back, whether they came by `assign` or by `subscribe`."""
        self.store_handed_out()
        with self._handle.translated("giving partitions back"):
            self._client.unassign()
        self._start_over()

    @property
    def assignment(self) -> set[Partition]:
        """The partitions that this consumer reads now."""
        with self._handle.translated("reading the assignment"):
            return {(place.topic, place.partition) for place in self._client.assignment()}

    @property
    def assigned_at(self) -> dict[Partition, int]:
        """The partitions that this consumer reads now, and the offsets that they were assigned with.

        -1000 where none was given: reading begins where the group committed, else as auto.offset.reset
        says.
        """
        with self._handle.translated("reading the assignment"):
            places = self._client.assignment()
        return {(place.topic, place.partition): place.offset for place in places}

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and stay in the group."""
        places = places_of(partitions)
        with self._handle.translated("pausing partitions"):
            self._put_back(places)
            self._client.pause(places)

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and keep what waits here of them."""
        with self._handle.translated("pausing partitions"):
            self._client.pause(places_of(partitions))

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        with self._handle.translated("resuming partitions"):
            self._client.resume(places_of(partitions))

    # -- who this is

    @property
    def member_id(self) -> str | None:
        """This member's name in the group; None until the group has taken it in."""
        found: str | None = self._client.memberid()
        return found or None

    def group_metadata(self) -> Any:
        """What a transaction needs to commit this consumer's offsets."""
        self.require_group("a transaction's offsets")
        return self._client.consumer_group_metadata()

    def require_group(self, what: str) -> None:
        """Raise where this consumer has no group under which something could be kept."""
        if self.group is None:
            raise ConfigError(f"{what} need a consumer group: give Consumer(..., group=NAME)")

    @property
    def cooperative(self) -> bool:
        """Whether partitions come and go one by one, and not all at once."""
        strategy = str(self._handle.get("partition.assignment.strategy", ""))
        return _COOPERATIVE in strategy or self._handle.get("group.protocol") == "consumer"


def _topic_names(topics: str | re.Pattern[str] | Iterable[str]) -> list[str]:
    if isinstance(topics, re.Pattern):
        if topics.flags & ~re.UNICODE:
            raise ConfigError(
                f"the flags of {topics!r} are not allowed: librdkafka reads the pattern, without them"
            )
        return [f"^({topics.pattern.removeprefix('^').removesuffix('$')})$"]
    names = (
        [topics] if isinstance(topics, str) or not isinstance(topics, Iterable) else list(topics)
    )
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            f"topics {topics!r} are not allowed; allowed: a name, a list of names, or a pattern"
        )
    return names
