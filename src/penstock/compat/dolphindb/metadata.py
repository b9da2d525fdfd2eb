"""The plugin's view of the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.compat.dolphindb.values import frame, objects
from penstock.kafka import cluster_metadata

if TYPE_CHECKING:
    from pandas import DataFrame


def getMetadata(handle: Any) -> dict[str, Any]:
    """Brokers, groups and topics of the cluster behind a handle, a configuration or "host:port".

    `brokers` is a table, `consumerGroups` and `topics` are dictionaries by name; a topic is a table of
    its partitions, and so are the partitions of a group's member.
    """
    told = cluster_metadata(handle)
    groups, topics = told["consumerGroups"].items(), told["topics"].items()
    return {
        "brokers": _table(told["brokers"], "id", "host", "port"),
        "consumerGroups": {name: _group(group) for name, group in groups},
        "topics": {
            name: _table(rows, "id", "error", "leader", "replicas") for name, rows in topics
        },
    }


def _group(group: dict[str, Any]) -> dict[str, Any]:
    members = {name: _member(member) for name, member in group["members"].items()}
    return {**group, "members": members}


def _member(member: dict[str, Any]) -> dict[str, Any]:
    return {**member, "partitions": _table(member["partitions"], "topic", "partition", "offset")}


def _table(rows: list[dict[str, Any]], *names: str) -> DataFrame:
    columns = {name: [row[name] for row in rows] for name in names}
    # Lists of one length would become a matrix.
    return frame({n: objects(c) if n == "replicas" else c for n, c in columns.items()})
