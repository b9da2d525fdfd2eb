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
    """Return positions for offsets of Connect; those that are positions already are left as they are."""
    return [
        (_place(config, place), None if offset is None else _position(config, offset))
        if _is_of_connect(place, offset)
        else (place, offset)
        for place, offset in offsets
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
    parts = str(place["table"]).split(".")
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
    missing = [role for role in wanted if not isinstance(offset.get(role), int)]
    if missing or not wanted:
        raise ConfigError(
            f"the offset {offset} has no {' and no '.join(missing) or 'place'} for the mode "
            f"{config['mode']!r}; allowed: {{'incrementing': NUMBER, 'timestamp': MILLISECONDS}}"
        )
    made = {role: offset[role] for role in wanted}
    if "timestamp" in made:
        made["timestamp"] = _text(config, offset)
    return made


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
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{int(nanoseconds) // 1000:06d}"
