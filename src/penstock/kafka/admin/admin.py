"""The cluster as an administrator and the engine see it: topics, groups, offsets, ACLs.

Every call has a time-out, and every failure is one of Penstock's errors. What each call does is in the
module of its subject; here they are together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.config import ConnectionLike
from penstock.errors import PenstockError, TransientError
from penstock.kafka.admin import acls, groups, lookup, metadata, resets
from penstock.kafka.admin import topics as on_topics
from penstock.kafka.admin.acls import Acl, AclFilter
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import (
    ClusterInfo,
    GroupDetail,
    GroupInfo,
    Setting,
    TopicDetail,
    TopicInfo,
)
from penstock.kafka.admin.lookup import Watermarks
from penstock.kafka.admin.resets import Chosen, ResetPlan, Target
from penstock.kafka.handle import Partition

_EVERY_ACL = AclFilter()


class Admin:
    """Ask a cluster about itself, and change it.

    Examples
    --------
    ::

        with Admin(connection) as admin:
            admin.create_topic("trades", partitions=3)
            admin.alter_topic("trades", {"retention.ms": 60_000})
            plan = admin.plan_reset("billing", "earliest")
            admin.reset(plan)

    `timeout` is in seconds, for each request; other keywords are settings of librdkafka or `oauth_cb`.
    """

    def __init__(self, connection: ConnectionLike, timeout: float = 10.0, **overrides: Any) -> None:
        self.timeout = timeout
        self._ask = AdminCalls(connection, timeout, **overrides)
        self.connection = self._ask.connection
        self._marks = Watermarks(self._ask)

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A closed Admin cannot be used again."""
        self._ask.close()

    # -- the cluster

    def cluster(self) -> ClusterInfo:
        """Return the cluster's id, its controller and its brokers."""
        return metadata.describe_cluster(self._ask)

    def metadata(self) -> dict[str, Any]:
        """Return brokers, groups with members and topics with partitions, like the DolphinDB plugin."""
        return metadata.read_metadata(self._ask)

    # -- topics

    def topics(self, internal: bool = False) -> list[TopicInfo]:
        """Return every topic by name; those of Kafka itself (names with two underscores) on request."""
        return [t for t in lookup.list_topics(self._ask) if internal or not t.internal]

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each topic; a topic that was deleted and recreated has another one.

        Topics that do not exist are left out.
        """
        return lookup.topic_ids(self._ask, topics)

    def describe_topic(self, name: str) -> TopicDetail:
        """Return partitions with leader, replicas and offsets, and the settings that are not default."""
        return on_topics.describe_topic(self._ask, name)

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic, and return when it can be used. What is not given is up to the broker."""
        on_topics.create_topic(self._ask, name, partitions, replication, config or {})

    def delete_topic(self, name: str) -> None:
        """Delete a topic with everything in it, and return when it is gone."""
        on_topics.delete_topic(self._ask, name)

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have `total` partitions, more than now. Keys may go to others from then on."""
        on_topics.add_partitions(self._ask, name, total)

    def topic_settings(self, name: str) -> tuple[Setting, ...]:
        """Return every setting of a topic, with its source; those with `own` were set for it."""
        lookup.look_up(self._ask, [name])
        return on_topics.read_settings(self._ask, name)

    def largest_record(self, topic: str) -> int | None:
        """Return how many bytes a record of a topic may have; None where that cannot be known."""
        try:
            settings = {each.name: each.value for each in self.topic_settings(topic)}
        except TransientError:
            raise
        except PenstockError:
            return None  # gone meanwhile, or this user may not see its settings
        return int(settings.get("max.message.bytes") or 0) or None

    def settings_of(self, names: Iterable[str]) -> dict[str, tuple[Setting, ...]]:
        """Return every setting of each topic, as `topic_settings`; missing topics are left out."""
        return on_topics.settings_of(self._ask, names)

    def alter_topic(self, name: str, config: Mapping[str, object]) -> None:
        """Change settings of a topic: a value sets one, None unsets it, others do not change."""
        on_topics.alter_settings(self._ask, name, config)

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        """Delete all records before an offset (-1: all there are), for each partition.

        Return the first remaining offset of each partition.
        """
        return on_topics.delete_records(self._ask, before)

    # -- groups

    def groups(self) -> list[GroupInfo]:
        """Return every consumer group by name."""
        return groups.list_groups(self._ask)

    def describe_group(self, group: str) -> GroupDetail:
        """Return state, members, and for every partition the committed offset, the end and the lag."""
        return groups.describe_group(self._ask, group)

    def plan_reset(self, group: str, to: Target, topics: Chosen = None) -> ResetPlan:
        """Plan the new offsets of a group; `reset` executes the plan.

        `to` is what `penstock groups reset --to` takes ("earliest", "latest", "+10", "-10", a time,
        an age), an offset, a datetime, or an offset for each partition. Without `topics` (names, or
        partitions as pairs) every partition is meant in which the group has committed.
        """
        return resets.plan_reset(self._ask, group, to, topics)

    def reset(self, plan: ResetPlan) -> None:
        """Move a group as planned; refused while the group has members."""
        resets.reset(self._ask, plan)

    def delete_group(self, group: str) -> None:
        """Delete a group with its offsets; refused while the group has members."""
        groups.delete_group(self._ask, group)

    # -- ACLs

    def acls(self, wanted: AclFilter = _EVERY_ACL) -> list[Acl]:
        """Return the rules who may do what: all of them, or those that a filter means."""
        return acls.list_acls(self._ask, wanted)

    def create_acls(self, rules: Iterable[Acl]) -> None:
        """Let rules hold; one that holds already is ignored."""
        acls.create_acls(self._ask, rules)

    def delete_acls(self, rules: Iterable[Acl]) -> list[Acl]:
        """Let exactly these rules hold no longer; the answer is those that did."""
        return acls.delete_acls(self._ask, rules)

    # -- offsets

    def partitions(self, topics: Iterable[str] | re.Pattern[str]) -> list[Partition]:
        """Return every partition of the given topics, or of those that match a pattern as a whole."""
        return lookup.partitions_of(self._ask, topics)

    def existing(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return those of the partitions that the cluster has now."""
        return lookup.existing(self._ask, partitions)

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset that each partition still has."""
        return self._marks.earliest(partitions)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset that each partition's next record will get."""
        return self._marks.latest(partitions)

    def offsets_at(
        self, timestamp_ms: int, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        """Return the first offset at or after a time; the end where no record is that young."""
        return self._marks.offsets_at(timestamp_ms, partitions)

    def committed(
        self, group: str, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, int]:
        """Return what a group committed; partitions without a committed offset are left out."""
        with self._ask.group(group) as offsets:
            return offsets.committed(partitions)
