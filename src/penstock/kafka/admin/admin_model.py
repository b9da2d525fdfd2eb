"""What the cluster reports about its topics and groups, as plain values that print and serialise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SettingSource = Literal["topic", "broker", "cluster", "file", "default", "unknown"]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One line of the list of topics."""

    name: str
    partitions: int
    replication: int
    internal: bool = False


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: who leads it, who copies it, and which offsets it holds."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """A topic with its partitions and the settings that differ from the broker's."""

    name: str
    partitions: tuple[PartitionInfo, ...]
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that holds for a topic, and where it was made.

    The source is `topic` (for this very topic), `broker` or `cluster` (changed while running, for
    one broker or for all), `file` (the broker's properties) or `default` (Kafka's own).
    """

    name: str
    value: str | None
    source: SettingSource
    read_only: bool = False

    @property
    def own(self) -> bool:
        """Return whether it was set for this topic."""
        return self.source == "topic"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """One broker of the cluster."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster as a whole; `controller` is the id of the broker to which changes go."""

    id: str
    controller: int | None
    brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """One line of the list of groups."""

    name: str
    state: str
    protocol: str


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """One consumer of a group, and the partitions it was given."""

    id: str
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """What a coordinator reports about a group; `simple` is one that commits and never had a member."""

    state: str
    protocol: str
    assignor: str
    simple: bool
    members: tuple[MemberInfo, ...]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """How far a group is in one partition. `end` is None where the topic is gone."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    member: str | None = None

    @property
    def lag(self) -> int | None:
        """Return how many offsets the group has yet to read; None if that is unknown."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """A group with its members and its position in every partition it touches."""

    name: str
    state: str
    protocol: str
    assignor: str
    members: tuple[MemberInfo, ...]
    positions: tuple[GroupPosition, ...]

    @property
    def lag(self) -> int:
        """Return the lag of all partitions together."""
        return sum(position.lag or 0 for position in self.positions)
