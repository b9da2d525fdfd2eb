"""Offsets of connectors: of sinks those of their group, of sources the positions of their parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.config import Connection
from penstock.connect.connector_class import Offsets
from penstock.control.job_spec import pipeline_name
from penstock.errors import ConfigError, GroupInUseError, PenstockError
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
    positions = read_positions(connection, pipeline_name(connector.row.name))
    pairs: Offsets = [(json.loads(place), each) for place, each in positions.items()]
    shown = connector.kind().shown_offsets(connector.parsed, pairs)
    return {"offsets": [{"partition": place, "offset": each} for place, each in shown]}


def given_offsets(body: Any) -> list[Any]:
    """Return the offsets that a body has."""
    if not isinstance(body, dict) or body.keys() - {"offsets"}:
        raise ConnectError(400, "the body is not a JSON object with 'offsets' alone")
    given = body.get("offsets")
    if given is not None and not isinstance(given, list):
        raise ConnectError(400, "'offsets' is not a list")
    if not given:
        raise ConnectError(
            400, "Partitions / offsets need to be provided for an alter offsets request"
        )
    return given


def alter(connector: Connector, connection: Connection, given: list[Any], *, at_rest: bool) -> str:
    """Set offsets; null removes one."""
    _require_rest(connector, at_rest=at_rest)
    for each in given:
        if not isinstance(each, dict) or each.keys() - {"partition", "offset"}:
            raise ConnectError(400, "an offset is not a JSON object with 'partition' and 'offset'")
    if connector.kind.kind == "sink":
        _alter_group(connector, connection, dict(map(_sink_entry, given)))
    else:
        wanted = _positions(connector, list(map(source_entry, given)))
        set_positions(connection, pipeline_name(connector.row.name), wanted)
    return ALTERED


def _positions(connector: Connector, given: Offsets) -> dict[str, dict[str, Any] | None]:
    try:
        found = connector.kind().take_over(connector.parsed, given)
    except ConfigError as error:
        raise ConnectError(400, str(error)) from None
    return {key_of(place): position for place, position in found}


def reset(connector: Connector, connection: Connection, *, at_rest: bool) -> str:
    """Remove all offsets: the connector starts over."""
    _require_rest(connector, at_rest=at_rest)
    if connector.kind.kind == "sink":
        with Admin(connection) as admin:
            if any(each.name == _group(connector) for each in admin.groups()):
                admin.delete_group(_group(connector))
        return RESET
    name = pipeline_name(connector.row.name)
    set_positions(connection, name, dict.fromkeys(read_positions(connection, name)))
    return RESET


def _of_group(connector: Connector, connection: Connection) -> list[dict[str, Any]]:
    with Admin(connection) as admin:
        return _described(admin.committed(_group(connector)))


def _described(offsets: Mapping[Place, int]) -> list[dict[str, Any]]:
    return [
        {"partition": {_TOPIC: topic, _PARTITION: number}, "offset": {_OFFSET: offset}}
        for (topic, number), offset in sorted(offsets.items())
    ]


def _alter_group(
    connector: Connector, connection: Connection, wanted: dict[Place, int | None]
) -> None:
    with Admin(connection) as admin:
        _require_existing(admin, [place for place, each in wanted.items() if each is not None])
        kept = admin.committed(_group(connector)) if None in wanted.values() else {}
        if None in wanted.values() and kept:
            # An offset cannot be removed alone: the group is made of those that stay.
            admin.delete_group(_group(connector))
    merged = {**kept, **wanted}
    offsets = {place: offset for place, offset in merged.items() if offset is not None}
    if not offsets:
        return
    try:
        with GroupOffsets(connection, _group(connector)) as group:
            group.commit(offsets)
    except PenstockError as error:
        if kept:
            raise ConnectError(500, _lost(error, offsets)) from None
        if isinstance(error, GroupInUseError):
            raise ConnectError(500, str(error)) from None
        raise


def _lost(error: PenstockError, offsets: dict[Place, int]) -> str:
    """Return the text for a group that was removed, and whose other offsets could not be set again."""
    body = json.dumps({"offsets": _described(offsets)}, separators=(",", ":"))
    return f"{error}. The group has no offsets now; send those that stay once more: {body}"


def _require_existing(admin: Admin, places: list[Place]) -> None:
    if missing := sorted({*places} - {*admin.existing(places)}):
        topic, number = missing[0]
        raise ConnectError(
            400, f"Kafka has no partition {number} of the topic {topic[:249]!r}; no offset was set"
        )


def _sink_entry(given: dict[str, Any]) -> tuple[Place, int | None]:
    partition = given.get("partition")
    if partition is None:
        raise ConnectError(
            400, "The partition for a sink connector offset cannot be null or missing"
        )
    if not isinstance(partition, dict):
        raise ConnectError(400, "the partition of a sink connector is not a JSON object")
    if _TOPIC not in partition or _PARTITION not in partition:
        raise ConnectError(
            400,
            f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and "
            f"'{_PARTITION}'",
        )
    if not isinstance(partition[_TOPIC], str):
        raise ConnectError(400, "Kafka topic names must be valid strings and may not be null")
    if partition[_PARTITION] is None:
        raise ConnectError(400, "Kafka partitions must be valid numbers and may not be null")
    place = (partition[_TOPIC], _whole(partition[_PARTITION], "partition", 2**31))
    return place, _sink_offset(given.get("offset"))


def _sink_offset(offset: Any) -> int | None:
    if offset is None:
        return None
    if not isinstance(offset, dict) or _OFFSET not in offset:
        raise ConnectError(
            400,
            f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'",
        )
    return _whole(offset[_OFFSET], "offset", 2**63)


def source_entry(given: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return partition and offset of a body's entry, with plain numbers, as positions are stored.

    >>> from penstock.server.connect.connect_body import parse_body
    >>> source_entry(parse_body(b'{"partition": {"url": "a"}, "offset": {"since": 1.50}}'))
    ({'url': 'a'}, {'since': 1.5})
    """
    partition = given.get("partition") if isinstance(given, dict) else None
    offset = given.get("offset") if isinstance(given, dict) else None
    if not isinstance(partition, dict) or not isinstance(offset, (dict, type(None))):
        raise ConnectError(
            400, "a source's offset is an object with 'partition' and 'offset', which are objects"
        )
    plain: list[Any] = json.loads(json.dumps([partition, offset]))
    return plain[0], plain[1]


def _whole(given: Any, what: str, limit: int) -> int:
    text = "null" if given is None else str(given)
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or int(text) >= limit:
        raise ConnectError(
            400,
            f"Failed to parse the following Kafka {what} value in the provided offsets: "
            f"'{text[:100]}'. {what.capitalize()} values for sink connectors need to be integers.",
        )
    if int(text) < 0:
        raise ConnectError(400, f"the Kafka {what} {text} is negative; give 0 or more")
    return int(text)


def _require_rest(connector: Connector, *, at_rest: bool) -> None:
    if not at_rest:
        raise ConnectError(400, _NOT_STOPPED.format(name=connector.name))


def _group(connector: Connector) -> str:
    return f"connect-{connector.name}"
