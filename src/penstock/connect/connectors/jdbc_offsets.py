"""Offsets of Connect's JDBC sources as positions of the tables that the source `database` reads."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from penstock.connect.connector_class import Offsets
from penstock.connect.connector_config import ConnectorConfig
from penstock.errors import ConfigError

_ROLES = ("incrementing", "timestamp")
_SCHEMAS = {"jdbc:postgresql:": "public", "jdbc:sqlite:": "main"}


def positions_of(config: ConnectorConfig, offsets: Offsets) -> Offsets:
    """Return positions for offsets of Connect; those that are positions already are left as they are.

    Connect's class keeps the offset of an earlier release, which named tables in another way, next to
    the one that it goes on from: that one, with a `protocol`, is the last one of its table here.
    """
    return [
        (_place(config, place), None if offset is None else _position(config, offset))
        if _is_of_connect(place, offset)
        else (place, offset)
        for place, offset in sorted(offsets, key=lambda pair: "protocol" in pair[0])
    ]


def _is_of_connect(place: dict[str, Any], offset: dict[str, Any] | None) -> bool:
    if "schema" in place:
        return False
    own = isinstance(offset, dict) and isinstance(offset.get("timestamp"), str)
    return "table" in place or ("query" in place and not own)


def _place(config: ConnectorConfig, place: dict[str, Any]) -> dict[str, Any]:
    """Return the place of a table: Connect names it with catalog and schema, or without."""
    if "table" not in place:
        return {"query": "query"}
    if not isinstance(place["table"], str):
        raise ConfigError(
            f"the partition {place} is not of a table; allowed: {{'table': 'SCHEMA.NAME'}}"
        )
    parts = place["table"].split(".")
    schema = parts[-2] if len(parts) > 1 else _schema(config)
    return {"schema": schema, "table": parts[-1]}


def _schema(config: ConnectorConfig) -> str:
    url = str(config["connection.url"])
    known = next((schema for start, schema in _SCHEMAS.items() if url.startswith(start)), None)
    given = config["schema.pattern"]
    if given and "%" not in given:
        return str(given)
    # In MariaDB and MySQL the schema is the database, which the address names.
    return known or url.partition("?")[0].rpartition("/")[2]


def _position(config: ConnectorConfig, offset: dict[str, Any]) -> dict[str, Any]:
    wanted = [role for role in _ROLES if role in str(config["mode"]).split("+")]
    missing = [role for role in wanted if not _is_whole(offset.get(role))]
    if missing or not wanted:
        raise ConfigError(
            f"the offset {offset} has no {' and no '.join(missing) or 'place'} for the mode "
            f"{config['mode']!r}; allowed: {{'incrementing': NUMBER, 'timestamp': MILLISECONDS}}"
        )
    made = {role: offset[role] for role in wanted}
    if "timestamp" in made:
        made["timestamp"] = _text(config, offset)
    return made


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(config: ConnectorConfig, offset: dict[str, Any]) -> str:
    """Return a time as positions have it: with all digits, in UTC, as times are here."""
    if str(config["connection.url"]).startswith("jdbc:sqlite:"):
        raise ConfigError(
            "times of SQLite have no form of their own, and an offset of Connect says nothing about it; "
            "set the position as 'penstock offsets list' shows it"
        )
    seconds, milliseconds = divmod(offset["timestamp"], 1000)
    # Connect has the digits after the second a second time, with more of them.
    nanoseconds = offset.get("timestamp_nanos", milliseconds * 1_000_000)
    if not _is_whole(nanoseconds) or not 0 <= nanoseconds < 1_000_000_000:
        raise ConfigError(
            f"the offset {offset} is not a time: timestamp_nanos is 0 to 999999999; leave it out, or "
            "give the nanoseconds within the second"
        )
    try:
        moment = datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"the offset {offset} is not a time of the years 1 to 9999; give the milliseconds since 1970"
        ) from None
    return f"{moment:%Y-%m-%d %H:%M:%S}.{nanoseconds // 1000:06d}"
