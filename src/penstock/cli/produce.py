"""`penstock produce`: write the lines of stdin to a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.cli.lines import Draft, LineReader, header
from penstock.cli.option_values import format_to_write
from penstock.cli.options import connection_of, end_in_order
from penstock.cli.output import counted, messages, say
from penstock.errors import ConfigError
from penstock.kafka import Admin, Producer

_SHOW_EVERY = 1000


def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to write to.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help='Lines are {"key": .., "value": .., "headers": {..}}.')
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Encode values: json, arrow, dolphindb (from JSON), "
            "string, short, integer, long, float, double, bytes, uuid, plain (from text).",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Each line is key, TEXT, value.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="The partition of every record. Default: by key.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create a missing topic.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Delivery timeout in seconds.")] = 30.0,
) -> None:
    """Write the lines of stdin to a topic, one record for each.

    For example: echo 'A:1.5' | penstock produce trades --key-separator : --format double

    penstock consume trades --json | penstock produce copy --json --create

    Without --format the line is the value, byte for byte. With --json a value that is not a string is
    written as JSON, null makes a tombstone, and key_base64 and value_base64 are bytes. The topic,
    partition, offset and error that 'penstock consume --json' prints are ignored.
    """
    reader = LineReader(
        as_json=as_json,
        key=key,
        separator=key_separator,
        headers=tuple(header(text) for text in headers or ()),
        format=None if form is None else format_to_write(form),
    )
    connection = connection_of(context)
    with Admin(connection) as admin:
        if create and topic not in {existing.name for existing in admin.topics()}:
            admin.create_topic(topic)
        _check_partition(admin, topic, partition)
    end_in_order()
    limit = int(timeout * 1000)
    producer = Producer(connection, queue_timeout=timeout, message_timeout_ms=limit)
    try:
        with producer:
            _send(producer, topic, partition, reader.drafts(_lines()))
    except KeyboardInterrupt:
        say(f"interrupted: {counted(producer.delivered, 'record')} written to {topic}")
        raise
    say(f"{counted(producer.delivered, 'record')} written to {topic}")


def _send(producer: Producer, topic: str, partition: int | None, drafts: Iterable[Draft]) -> None:
    """Produce the drafts, with a live counter on a terminal unless the user types the records."""
    console = messages()
    watched = console.is_terminal and not sys.stdin.isatty()
    text = TextColumn("{task.completed:,.0f} records delivered")
    columns = (SpinnerColumn(), text, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not watched) as bar:
        task = bar.add_task("", total=None)
        for number, draft in enumerate(drafts):
            producer.produce(
                topic,
                draft.key,
                draft.value,
                partition=partition,
                headers=draft.headers,
                timestamp=draft.timestamp,
            )
            if number % _SHOW_EVERY == 0:
                producer.raise_failures()
                bar.update(task, completed=producer.delivered)
        producer.flush()


def _check_partition(admin: Admin, topic: str, partition: int | None) -> None:
    there = [number for _, number in admin.partitions([topic])]
    if partition is not None and partition not in there:
        raise ConfigError(
            f"topic {topic!r} has no partition {partition}; allowed: 0 to {max(there)}; to add some: "
            f"penstock topics alter {topic} --partitions {partition + 1}"
        )


def _lines() -> Iterator[bytes]:
    if sys.stdin.isatty():
        say("type one record per line; Ctrl-D ends")
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n")
