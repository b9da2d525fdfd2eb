"""`penstock consume`: print the records of topics."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from penstock.cli.option_values import format_to_read
from penstock.cli.options import connection_of, end_in_order
from penstock.cli.output import counted, say, write
from penstock.cli.printing import Output, Printer
from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.formats import FORMATS
from penstock.kafka import Admin, Consumer, Position
from penstock.kafka.consuming.loops import read_on, read_span, read_to_end
from penstock.kafka.positions import ALLOWED
from penstock.record import Record


@dataclass(frozen=True)
class Wanted:
    """The range of records to print."""

    topics: list[str]
    start: str
    until: str | None
    follow: bool
    group: str | None

    def __post_init__(self) -> None:
        if self.follow and self.until:
            raise ConfigError(f"--follow never ends, and --until {self.until} does: give one")
        if self.group and self.until not in (None, "end"):
            raise ConfigError("--until cannot be combined with --group: the group reads to the end")
        if self.group and Position.parse(self.start).kind not in ("earliest", "latest"):
            raise ConfigError(
                f"--from {self.start} cannot be combined with --group: a group starts where it stopped, "
                "and at --from earliest or latest where it has no offset"
            )


def consume(
    context: typer.Context,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics to read.")],
    *,
    start: Annotated[
        str, typer.Option("--from", metavar="POSITION", help=f"Where to start: {ALLOWED}.")
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="Where to stop, in the same form. Default: end."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help=f"Decode values: {', '.join(FORMATS)}."),
    ] = None,
    output: Annotated[
        Output,
        typer.Option("--output", "-o", help="json: whole records; raw: only the bytes of values."),
    ] = Output.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many records.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records; Ctrl-C ends.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(help="Resume where this group stopped, and commit what was printed."),
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Print key, TEXT, value (text and hex).")
    ] = None,
) -> None:
    """Print the existing records of topics, or, with --follow, also new ones.

    For example: penstock consume trades --from -10

    penstock consume trades --follow --format auto --key-separator ': '

    A value that --format does not decode is shown with its error, and printing continues.
    """
    wanted = Wanted(topics, start, until, follow, group)
    printer = Printer(
        _output(output, as_json),
        key_separator,
        None if form is None else format_to_read(form),
        terminal=sys.stdout.isatty(),
    )
    end_in_order()
    try:
        with _reading(connection_of(context), wanted) as (consumer, batches):
            _print(batches, printer, count, consumer if group else None)
    finally:
        if printer.failed:
            say(f"{counted(printer.failed, 'record')} did not decode with --format {form}")


def _print(
    batches: Iterator[list[Record]], printer: Printer, count: int | None, member: Consumer | None
) -> None:
    printed = 0
    for records in batches:
        shown = records if count is None else records[: count - printed]
        try:
            if data := b"".join(map(printer, shown)):
                write(data)
        except BrokenPipeError:  # stdout was closed: a normal end
            return
        printed += len(shown)
        if member and shown:
            member.commit({(r.topic, r.partition): r.offset + 1 for r in shown})
        if printed == count:
            return


def _output(given: Output, as_json: bool) -> Output:
    if as_json and given not in (Output.text, Output.json):
        raise ConfigError(f"--json and --output {given.value} were both given; give one of them")
    return Output.json if as_json else given


@contextmanager
def _reading(
    connection: Connection, wanted: Wanted
) -> Iterator[tuple[Consumer, Iterator[list[Record]]]]:
    how: dict[str, Any] = {"enable.auto.commit": False}
    if wanted.group:
        how["auto.offset.reset"] = Position.parse(wanted.start).kind
    with Admin(connection) as admin, Consumer(connection, wanted.group, **how) as consumer:
        yield consumer, _batches(admin, consumer, wanted)


def _batches(admin: Admin, consumer: Consumer, wanted: Wanted) -> Iterator[list[Record]]:
    partitions = admin.partitions(wanted.topics)
    if wanted.group:
        consumer.subscribe(wanted.topics)
        return read_on(consumer) if wanted.follow else read_to_end(consumer)
    start = Position.parse(wanted.start).offsets(admin, partitions)
    if wanted.follow:
        consumer.assign(start)
        return read_on(consumer)
    stop = Position.parse(wanted.until or "end").offsets(admin, partitions)
    return read_span(consumer, start, stop)
