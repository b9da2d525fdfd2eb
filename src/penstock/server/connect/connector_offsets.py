"""Offsets of connectors: of sinks those of their group, of sources the positions of their parts."""

from __future__ import annotations

import json
from typing import Any

from penstock.config import Connection
from penstock.control.job_spec import pipeline_name
from penstock.errors import GroupInUseError
from penstock.imports.position_editing import read_positions, set_positions
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline.importing import key_of
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.connect.connector_store import Connector

ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"
_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
    "the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
Place = tuple[str, int]


def read(connector: Connector, connection: Connection) -> dict[str, Any]:
    """Return the offsets of a connector."""
    if connector.kind.kind == "sink":
        return {"offsets": _of_group(connector, connection)}
    positions = read_positions(connection, pipeline_name(connector.name))
    found = [{"partition": json.loads(place), "offset": each} for place, each in positions.items()]
    return {"offsets": found}


def alter(connector: Connector, connection: Connection, body: Any, *, at_rest: bool) -> str:
    """Set the offsets that a body has; null removes one."""
    _require_rest(connector, at_rest=at_rest)
    given = body.get("offsets") if isinstance(body, dict) else None
    if not isinstance(given, list) or not given:
        raise ConnectError(
            400, "Partitions / offsets need to be provided for an alter offsets request"
        )
    if connector.kind.kind == "sink":
        _alter_group(connector, connection, dict(map(_sink_entry, given)))
    else:
        set_positions(connection, pipeline_name(connector.name), dict(map(_source_entry, given)))
    return ALTERED


def reset(connector: Connector, connection: Connection, *, at_rest: bool) -> str:
    """Remove all offsets: the connector starts over."""
    _require_rest(connector, at_rest=at_rest)
    if connector.kind.kind == "sink":
        with Admin(connection) as admin:
            if any(each.name == _group(connector) for each in admin.groups()):
                admin.delete_group(_group(connector))
        return RESET
    name = pipeline_name(connector.name)
    set_positions(connection, name, dict.fromkeys(read_positions(connection, name)))
    return RESET


def _of_group(connector: Connector, connection: Connection) -> list[dict[str, Any]]:
    with Admin(connection) as admin:
        committed = admin.committed(_group(connector))
    return [
        {"partition": {_TOPIC: topic, _PARTITION: number}, "offset": {_OFFSET: offset}}
        for (topic, number), offset in sorted(committed.items())
    ]


def _alter_group(
    connector: Connector, connection: Connection, wanted: dict[Place, int | None]
) -> None:
    with Admin(connection) as admin:
        kept = admin.committed(_group(connector)) if None in wanted.values() else {}
        if None in wanted.values() and kept:
            # An offset cannot be removed alone: the group is made of those that stay.
            admin.delete_group(_group(connector))
    merged = {**kept, **wanted}
    offsets = {place: offset for place, offset in merged.items() if offset is not None}
    if offsets:
        try:
            with GroupOffsets(connection, _group(connector)) as group:
                group.commit(offsets)
        except GroupInUseError as error:
            raise ConnectError(500, str(error)) from None


def _sink_entry(given: Any) -> tuple[Place, int | None]:
    partition = given.get("partition") if isinstance(given, dict) else None
    if not isinstance(partition, dict):
        raise ConnectError(
            400, "The partition for a sink connector offset cannot be null or missing"
        )
    if _TOPIC not in partition or _PARTITION not in partition:
        raise ConnectError(
            400,
            f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and "
            f"'{_PARTITION}'",
        )
    offset = given.get("offset")
    if offset is not None and (not isinstance(offset, dict) or _OFFSET not in offset):
        raise ConnectError(
            400,
            f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'",
        )
    place = (str(partition[_TOPIC]), _whole(partition[_PARTITION], _PARTITION))
    return place, None if offset is None else _whole(offset[_OFFSET], _OFFSET)


def _source_entry(given: Any) -> tuple[str, dict[str, Any] | None]:
    partition = given.get("partition") if isinstance(given, dict) else None
    offset = given.get("offset") if isinstance(given, dict) else None
    if not isinstance(partition, dict) or not isinstance(offset, (dict, type(None))):
        raise ConnectError(
            400, "a source's offset is an object with 'partition' and 'offset', which are objects"
        )
    return key_of(partition), offset


def _whole(given: Any, key: str) -> int:
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ConnectError(400, f"{key} is {text[:100]!r}; give a whole number")
    return int(text)


def _require_rest(connector: Connector, *, at_rest: bool) -> None:
    if not at_rest:
        raise ConnectError(400, _NOT_STOPPED.format(name=connector.name))


def _group(connector: Connector) -> str:
    return f"connect-{connector.name}"
