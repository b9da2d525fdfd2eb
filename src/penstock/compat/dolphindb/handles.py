"""Producers and consumers with the plugin's defaults, closed when the process ends; their cluster.

The plugin has no call to close one, and a script must neither lose records nor stay a group member.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from penstock.compat.dolphindb.dolphindb_arguments import checked
from penstock.compat.dolphindb.dolphindb_values import frame, objects
from penstock.compat.dolphindb.producing import SIZES
from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError
from penstock.kafka import Consumer, Producer, cluster_metadata
from penstock.kafka.admin.metadata import connection_to

if TYPE_CHECKING:
    from pandas import DataFrame

ErrCallback = Callable[[str, str, str], None]
"""A callback for background errors: level ("ERROR" or "WARNING"), name, message."""

# The plugin's default; Penstock's consumers do not commit automatically.
_DEFAULTS = {"enable.auto.commit": True, "auto.commit.interval.ms": 60_000}

_producers: WeakSet[Producer] = WeakSet()
_consumers: WeakSet[Consumer] = WeakSet()


@checked()
def producer(config: Mapping[str, Any], errCallback: ErrCallback | None = None) -> Producer:
    """Create a producer. Buffered records are delivered when the process ends; `close()` does it sooner.

    >>> producer({"bootstrap.servers": "localhost"}).connection.brokers
    'localhost:9092'
    """
    made = Producer(Connection.from_config(config), on_error=errCallback)
    made.sizes = SIZES
    _producers.add(made)
    return made


@checked()
def consumer(config: Mapping[str, Any], errCallback: ErrCallback | None = None) -> Consumer:
    """Create a consumer of the group `group.id`, which must be given.

    As in the plugin, offsets are committed every 60 seconds unless `enable.auto.commit` is false. It
    leaves its group when the process ends; `close()` does it sooner.
    """
    connection = Connection.from_config(config)
    if connection.group_id is None:
        raise ConfigError("group.id is missing: a consumer needs one, e.g. {'group.id': 'test'}")
    given = connection.to_config()
    defaults: dict[str, Any] = {key: value for key, value in _DEFAULTS.items() if key not in given}
    made = Consumer(connection, on_error=errCallback, **defaults)
    _consumers.add(made)
    return made


@atexit.register
def _end() -> None:
    # An error of one of them must not prevent closing the others.
    with ExitStack() as stack:
        for sending in _producers:
            stack.callback(_deliver, sending)
        for reading in _consumers:
            stack.callback(reading.close)


def _deliver(sending: Producer) -> None:
    if len(sending):
        sending.flush(sending.timeout)


def _check_handle(name: str, given: Any) -> None:
    try:
        connection_to(given)
    except PenstockError as error:
        raise ConfigError(f"{name}: {error}") from error


@checked(handle=_check_handle)
def getMetadata(handle: Any) -> dict[str, Any]:
    """Return brokers, groups and topics of the cluster of a handle, a configuration or "host:port".

    `brokers` is a table, `consumerGroups` and `topics` are dictionaries by name; a topic is a table of
    its partitions, and so are the partitions of a group's member.
    """
    metadata = cluster_metadata(handle)
    groups, topics = metadata["consumerGroups"].items(), metadata["topics"].items()
    return {
        "brokers": _table(metadata["brokers"], "id", "host", "port"),
        "consumerGroups": {name: _group(group) for name, group in groups},
        "topics": {
            name: _table(rows, "id", "error", "leader", "replicas") for name, rows in topics
        },
    }


def _group(group: dict[str, Any]) -> dict[str, Any]:
    members = {
        name: {**member, "partitions": _table(member["partitions"], "topic", "partition", "offset")}
        for name, member in group["members"].items()
    }
    return {**group, "members": members}


def _table(rows: list[dict[str, Any]], *names: str) -> DataFrame:
    columns = {name: [row[name] for row in rows] for name in names}
    # Lists of one length would become a matrix.
    return frame({n: objects(c) if n == "replicas" else c for n, c in columns.items()})
