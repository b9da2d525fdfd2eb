"""Positions as operators see and change them: list, set, reset. What they do holds for a running import.

A change is a transaction under the name of the part's own: it fences the task that reads the part, whose
next reading begins at the new position.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.imports.positions import (
    SHORT,
    TOPIC,
    Positions,
    create_topic,
    position_record,
    transaction_of,
)
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline.importing import Position, key_of


def read_positions(connection: Connection, name: str) -> dict[str, Position]:
    """Return the positions of an import, by the place of each part as JSON."""
    create_topic(connection)
    with Positions(connection) as positions:
        return positions.read(name).positions


def set_positions(
    connection: Connection, name: str, positions: Mapping[str, Position | None]
) -> None:
    """Set the position of each part, by its place as JSON; None lets it be read from the start."""
    create_topic(connection)
    for place, position in positions.items():
        with Transaction(connection, transaction_of(name, place), SHORT) as transaction:
            transaction.begin()
            transaction.send(position_record(name, place, position), TOPIC)
            transaction.commit()


def parse_place(given: str) -> str:
    """Return a part's place as it is stored.

    >>> parse_place('{"table": "orders", "schema": "public"}')
    '{"schema":"public","table":"orders"}'
    """
    return key_of(_mapping(given, "a part"))


def parse_position(given: str) -> Position:
    """Return a position.

    >>> parse_position('{"id": 17}')
    {'id': 17}
    """
    return _mapping(given, "a position")


def _mapping(given: str, what: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(given, type=dict[str, object])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"{given!r} is not {what}: {error}; allowed: a JSON object, as 'penstock offsets list' shows"
        ) from None
