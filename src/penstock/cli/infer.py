"""`penstock infer`: a pipeline definition from a sample of a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from penstock.cli.definition_text import definition_text
from penstock.cli.options import Cluster, connection_of, end_in_order
from penstock.cli.output import counted, say, write
from penstock.config import Connection
from penstock.decode.inference import infer as infer_columns
from penstock.errors import ConfigError
from penstock.kafka import Admin, Consumer, Position
from penstock.kafka.consuming.loops import read_span
from penstock.record import Record


def infer(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.")],
    *,
    records: Annotated[int, typer.Option(min=1, help="How many records to read.")] = 1000,
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="earliest|latest", help="The oldest records, or the newest."
        ),
    ] = "earliest",
) -> None:
    """Print a pipeline definition for the JSON records of a topic, with a schema inferred from a sample.

    For example: penstock infer trades > trades.yaml

    penstock infer trades --records 10000 --from latest
    """
    if start not in ("earliest", "latest"):
        raise ConfigError(f"--from {start} is not allowed; allowed: earliest, latest")
    end_in_order()
    values = sample(connection_of(context), topic, records, start)
    found = infer_columns(values)
    if found.failed:
        say(f"{counted(found.failed, 'record')} of {found.records} are not JSON objects")
    if not found.columns:
        raise ConfigError(
            f"no field was found in {counted(found.records, 'record')} of {topic}; "
            "a schema needs JSON objects with at least one field"
        )
    cluster: Cluster = context.obj
    write(definition_text(topic, found, cluster.connection, cluster.brokers).encode())


def sample(connection: Connection, topic: str, records: int, start: str) -> list[bytes]:
    """Return the values of the oldest records, or of the newest, as many of each partition."""
    settings: dict[str, Any] = {"enable.auto.commit": False}
    with Admin(connection) as admin, Consumer(connection, **settings) as consumer:
        partitions = admin.partitions([topic])
        share = -(-records // len(partitions))
        position = Position("earliest") if start == "earliest" else Position("last", share)
        first = position.offsets(admin, partitions)
        end = Position("latest").offsets(admin, partitions)
        return _values(read_span(consumer, first, end), records)


def _values(batches: Iterator[list[Record]], most: int) -> list[bytes]:
    """Return the values of records; tombstones have none."""
    values: list[bytes] = []
    for batch in batches:
        values += [record.value for record in batch if record.value is not None]
        if len(values) >= most:
            break
    return values[:most]
