"""`penstock produce`: lines of stdin become records of a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.cli.lines import Draft, LineReader, header
from penstock.cli.options import connection_of
from penstock.cli.output import messages, say
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
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Each line is key, TEXT, value.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record."),
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Default: by key.")] = None,
    create: Annotated[bool, typer.Option("--create", help="Make a topic that is missing.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until a delivery fails.")] = 30.0,
) -> None:
    """Write the lines of stdin to a topic, one record for each.

    With --json a value that is not a string is written as JSON, null makes a tombstone, and
    key_base64 and value_base64 hold bytes. The topic, partition and offset that
    'penstock consume --format json' prints are left out of account.
    """
    reader = LineReader(
        as_json=as_json,
        key=key,
        separator=key_separator,
        headers=tuple(header(text) for text in headers or ()),
    )
    connection = connection_of(context)
    with Admin(connection) as admin:
        _have_topic(admin, topic, create)
    limit = int(timeout * 1000)
    with Producer(connection, queue_timeout=timeout, message_timeout_ms=limit) as producer:
        _send(producer, topic, partition, reader.drafts(_lines()))
    say(f"{producer.delivered} records written to {topic}")


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
    try:
        admin.partitions([topic])
    except ConfigError:
        if not create:
            raise
        admin.create_topic(topic)


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
