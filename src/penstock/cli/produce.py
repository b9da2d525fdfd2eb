"""`penstock produce`: lines of stdin become records of a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.cli.lines import Draft, LineReader, header
from penstock.cli.options import connection_of, end_in_order
from penstock.cli.output import counted, messages, say
from penstock.cli.values import format_to_write
from penstock.errors import ConfigError
from penstock.kafka import Admin, Producer

_SHOW_EVERY = 1000


def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    *,
    as_json: Annotated[
        bool,
        typer.Option("--json", help='Lines are {"key": .., "value": .., "headers": {..}}.'),
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
    create: Annotated[bool, typer.Option("--create", help="Make a topic that is missing.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until a delivery fails.")] = 30.0,
) -> None:
    """Write the lines of stdin to a topic, one record for each.

    For example: echo 'A:1.5' | penstock produce trades --key-separator : --format double

    penstock consume trades --json | penstock produce copy --json --create

    Without --format the line is the value, byte for byte. With --json a value that is not a string is
    written as JSON, null makes a tombstone, and key_base64 and value_base64 hold bytes. The topic,
    partition, offset and error that 'penstock consume --json' prints are left out of account.
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
        _have_topic(admin, topic, create)
        _have_partition(admin, topic, partition)
    end_in_order()
    limit = int(timeout * 1000)
    producer = Producer(connection, queue_timeout=timeout, message_timeout_ms=limit)
    with _telling(producer, topic), producer:
        _send(producer, topic, partition, reader.drafts(_lines()))


@contextmanager
def _telling(producer: Producer, topic: str) -> Iterator[None]:
    """Say how many were written, also after Ctrl-C; an error says it in its own words."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted: {counted(producer.delivered, 'record')} written to {topic}")
        raise
    say(f"{counted(producer.delivered, 'record')} written to {topic}")


def _send(producer: Producer, topic: str, partition: int | None, drafts: Iterable[Draft]) -> None:
    with _progress(producer) as shown:
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
                shown()
        producer.flush()


def _have_topic(admin: Admin, topic: str, create: bool) -> None:
    if create and topic not in {found.name for found in admin.topics()}:
        admin.create_topic(topic)
    admin.partitions([topic])


def _have_partition(admin: Admin, topic: str, partition: int | None) -> None:
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


@contextmanager
def _progress(producer: Producer) -> Iterator[Callable[[], None]]:
    """A count that moves while records go out, when a person sees it and does not type."""
    console = messages()
    watched = console.is_terminal and not sys.stdin.isatty()
    text = TextColumn("{task.completed:,.0f} records delivered")
    with Progress(
        SpinnerColumn(),
        text,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not watched,
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda: bar.update(task, completed=producer.delivered)
