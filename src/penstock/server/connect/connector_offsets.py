"""Offsets of connectors: of sinks those of their group, of sources the positions of their parts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from penstock.config import Connection
from penstock.connect.common_keys import TOPICS, TOPICS_REGEX
from penstock.connect.connector_class import Offsets
from penstock.connect.unused_keys import RESET as OFFSET_RESET
from penstock.control.job_spec import pipeline_name
from penstock.engine.resumption import STARTS_OVER
from penstock.errors import ConfigError, GroupInUseError
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
    _require_class(connector)
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
    _require_class(connector)
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
    _require_class(connector)
    _require_rest(connector, at_rest=at_rest)
    if connector.kind.kind == "sink":
        with Admin(connection) as admin:
            places = {*admin.committed(_group(connector)), *_partitions(connector, admin)}
            starts = _starts(connector, admin, places)
        _commit(connector, connection, starts, dict.fromkeys(starts, STARTS_OVER))
        return RESET
    name = pipeline_name(connector.row.name)
    set_positions(connection, name, dict.fromkeys(read_positions(connection, name)))
    return RESET


def _of_group(connector: Connector, connection: Connection) -> list[dict[str, Any]]:
    with GroupOffsets(connection, _group(connector)) as group:
        committed = group.committed_with_metadata()
    return [
        {"partition": {_TOPIC: topic, _PARTITION: number}, "offset": {_OFFSET: each.offset}}
        for (topic, number), each in sorted(committed.items())
        if each.metadata != STARTS_OVER
    ]


def _alter_group(
    connector: Connector, connection: Connection, wanted: dict[Place, int | None]
) -> None:
    given = {place: offset for place, offset in wanted.items() if offset is not None}
    with Admin(connection) as admin:
        _require_existing(admin, [*given])
        removed = admin.existing([place for place in wanted if place not in given])
        starts = _starts(connector, admin, removed)
    texts = dict.fromkeys(given, "") | dict.fromkeys(starts, STARTS_OVER)
    _commit(connector, connection, given | starts, texts)


def _starts(connector: Connector, admin: Admin, places: Collection[Place]) -> dict[Place, int]:
    """Return what is committed in place of offsets that are removed.

    The connector's own state has its place, too, and holds where the group has no offset. Where it begins
    is up to the configuration at its next start; other consumers of the group see these offsets.
    """
    if not places:
        return {}
    is_latest = (connector.config.get(OFFSET_RESET) or "").strip().lower() == "latest"
    return admin.latest(places) if is_latest else admin.earliest(places)


def _partitions(connector: Connector, admin: Admin) -> list[Place]:
    """Return the partitions of the connector's topics, as far as those exist."""
    config = connector.parsed
    pattern = config[TOPICS_REGEX] or "|".join(map(re.escape, config[TOPICS] or ()))
    try:
        return admin.partitions(re.compile(pattern)) if pattern else []
    except re.error:
        return []  # a connector with this pattern has read nothing


def _commit(
    connector: Connector,
    connection: Connection,
    offsets: dict[Place, int],
    texts: dict[Place, str],
) -> None:
    try:
        with GroupOffsets(connection, _group(connector)) as group:
            group.commit(offsets, texts)
    except GroupInUseError as error:
        raise ConnectError(500, str(error)) from None


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


def _require_class(connector: Connector) -> None:
    if connector.kind.kind not in ("source", "sink"):
        raise ConnectError(
            400,
            f"the class {connector.kind.names[0]} of {connector.name} is not installed here, so that its "
            "offsets are not known; install its package where the server and the workers run",
        )


def _require_rest(connector: Connector, *, at_rest: bool) -> None:
    if not at_rest:
        raise ConnectError(400, _NOT_STOPPED.format(name=connector.name))


def _group(connector: Connector) -> str:
    return f"connect-{connector.name}"
