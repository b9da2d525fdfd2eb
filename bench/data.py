"""A topic full of small JSON trades, about 90 bytes each."""

from __future__ import annotations

import random

import orjson

from penstock.config import Connection
from penstock.kafka import Admin, Producer

SCHEMA = "id bigint, symbol string, price double, size int, side string"
PARTITIONS = 4


def trade(number: int, dice: random.Random) -> bytes:
    return orjson.dumps(
        {
            "id": number,
            "symbol": dice.choice(("AAPL", "MSFT", "NVDA", "TSLA", "AMZN")),
            "price": round(dice.uniform(10, 500), 2),
            "size": dice.randint(1, 1000),
            "side": dice.choice(("buy", "sell")),
            "venue": "XNAS",
        }
    )


def trades(count: int) -> list[bytes]:
    """Return different trades, the same ones each time."""
    dice = random.Random(7)
    return [trade(number, dice) for number in range(count)]


def fill(connection: Connection, topic: str, rows: int, key: str | None = None) -> None:
    """Write `rows` trades, evenly over the partitions; a thousand different ones, again and again."""
    values = trades(1000)
    with Admin(connection) as admin:
        admin.create_topic(topic, PARTITIONS)
    overrides = {"linger.ms": 50, "batch.size": 1_000_000}
    with Producer(connection, **overrides) as producer:
        for number in range(rows):
            producer.produce(topic, key, values[number % 1000], partition=number % PARTITIONS)
