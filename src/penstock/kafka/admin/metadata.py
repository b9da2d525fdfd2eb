"""The cluster at one glance: brokers, groups with their members, topics with their partitions.

The shape, down to the names, is that of the DolphinDB plugin's getMetadata; tables are lists of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin import groups
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import BrokerInfo, ClusterInfo, GroupDescription, MemberInfo
from penstock.kafka.admin.coordinator import Outcome
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import NO_OFFSET

SUCCESS = "Success"

ASSIGNMENT_VERSION = 0
"""What librdkafka's consumers write; it reads the number of others, and keeps it to itself."""

_STATES = {
    "preparing_rebalancing": "PreparingRebalance",
    "completing_rebalancing": "CompletingRebalance",
}


def cluster_metadata(what: Any, timeout: float = 10.0) -> dict[str, Any]:
    """Return the metadata of the cluster of a client, a configuration, or "host:port".

    ::

        cluster_metadata("localhost:9092")["brokers"]  # [{'id': 1, 'host': 'localhost', 'port': 9092}]
    """
    with closing(AdminCalls(connection_to(what), timeout)) as ask:
        return read_metadata(ask)


def connection_to(what: Any) -> Connection:
    """Return the connection that is meant by a client, a configuration, a connection, or "host:port".

    >>> connection_to("localhost").brokers
    'localhost:9092'
    """
    connection = what if isinstance(what, Connection) else getattr(what, "connection", None)
    if isinstance(connection, Connection):
        return connection
    if isinstance(what, str):
        return Connection.from_config({"bootstrap.servers": what})
    if isinstance(what, Mapping):
        return Connection.from_config(what)
    raise ConfigError(
        f"a cluster is named by a Producer, Consumer or Admin, a Connection, a mapping of keys, "
        f"or 'host:port'; {type(what).__name__} was given"
    )


def describe_cluster(ask: AdminCalls) -> ClusterInfo:
    """Return the cluster's id, its controller and its brokers."""
    cluster = ask.one("describing the cluster", ask.client.describe_cluster)
    brokers = sorted(
        (BrokerInfo(node.id, node.host, node.port, node.rack) for node in cluster.nodes),
        key=lambda broker: broker.id,
    )
    controller = None if cluster.controller is None else cluster.controller.id
    return ClusterInfo(cluster.cluster_id or "", controller, tuple(brokers))


def read_metadata(ask: AdminCalls) -> dict[str, Any]:
    """Return the metadata in the plugin's structure."""
    answer = ask.metadata("reading the cluster's metadata")
    brokers = sorted(answer.brokers.values(), key=lambda broker: broker.id)
    return {
        "brokers": [{"id": b.id, "host": b.host, "port": b.port} for b in brokers],
        "consumerGroups": _groups(ask),
        "topics": {name: _partitions(answer.topics[name]) for name in sorted(answer.topics)},
    }


def _partitions(topic: Any) -> list[dict[str, Any]]:
    return [
        {"id": number, "error": _text(p.error), "leader": p.leader, "replicas": list(p.replicas)}
        for number, p in sorted(topic.partitions.items())
    ]


def _groups(ask: AdminCalls) -> dict[str, Any]:
    names = [group.name for group in groups.list_groups(ask)]
    if not names:
        return {}
    outcomes = ask.coordinator.describe(names)
    return {name: _group(ask, name, outcome) for name, outcome in outcomes.items() if outcome}


def _group(ask: AdminCalls, name: str, group: Outcome) -> dict[str, Any]:
    if not isinstance(group, GroupDescription):
        unknown = {"state": "Unknown", "protocolType": "", "protocol": ""}
        return {**unknown, "error": str(group), "members": {}}
    committed, error = _committed(ask, name, group)
    return {
        "state": _STATES.get(group.state, group.state.capitalize()),
        # A group that only ever committed offsets, and never had a member, has no type.
        "protocolType": "" if group.simple else "consumer",
        "protocol": group.assignor,
        "error": error,
        "members": {m.id: _member(m, committed) for m in group.members},
    }


def _member(member: MemberInfo, committed: Mapping[Partition, int]) -> dict[str, Any]:
    return {
        "clientID": member.client_id,
        "clientHost": member.host,
        "memberAssignmentVersion": ASSIGNMENT_VERSION,
        "partitions": [
            {"topic": t, "partition": p, "offset": committed.get((t, p), NO_OFFSET)}
            for t, p in member.partitions
        ],
    }


def _committed(
    ask: AdminCalls, name: str, group: GroupDescription
) -> tuple[dict[Partition, int], str]:
    """Return what the group committed where its members read; one group's error is not the cluster's."""
    read = [partition for member in group.members for partition in member.partitions]
    if not read:
        return {}, SUCCESS
    try:
        with ask.group(name) as offsets:
            return offsets.committed(read), SUCCESS
    except PenstockError as error:
        return {}, str(error)


def _text(error: Any) -> str:
    return SUCCESS if error is None else str(error.str())
