"""`penstock consume`: the records of topics on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import orjson
import typer

from penstock.cli.lines import as_document
from penstock.cli.options import connection_of
from penstock.cli.output import write
from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.kafka import Admin, Consumer, Position
from penstock.kafka.consuming.loops import read_on, read_span, read_to_end
from penstock.kafka.positions import ALLOWED
from penstock.record import Record


class Format(str, Enum):
    """How a record is printed."""

    text = "text"
    json = "json"
    hex = "hex"
    raw = "raw"


@dataclass(frozen=True)
class Wanted:
    """Which records are asked for."""

    topics: list[str]
    start: str
    until: str | None
    follow: bool
    group: str | None

    def __post_init__(self) -> None:
        if self.follow and self.until:
            raise ConfigError(f"--follow never ends, and --until {self.until} does: give one")
        if self.group and self.until not in (None, "end"):
            raise ConfigError("--until does not go with --group: the group goes on to the end")
        if self.group and Position.parse(self.start).kind not in ("earliest", "latest"):
            raise ConfigError(
                f"--from {self.start} does not go with --group: the group starts where it stopped, "
                "and at --from earliest or latest where it never was"
            )


def consume(
    context: typer.Context,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="What to read.")],
    *,
    start: Annotated[
        str, typer.Option("--from", metavar="POSITION", help=f"Where to begin: {ALLOWED}.")
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="Where to stop, in the same words. Default: end."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="raw: the bytes alone.")] = Format.text,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many records.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records; Ctrl-C ends.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(help="Go on where this group stopped, and commit what was printed."),
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Print key, TEXT, value (text and hex).")
    ] = None,
) -> None:
    """Print the records of topics, those that are there now or, with --follow, all that come."""
    wanted = Wanted(topics, start, until, follow, group)
    printed = 0
    with _reading(connection_of(context), wanted) as (consumer, batches):
        for records in batches:
            shown = records if count is None else records[: count - printed]
            if not _show(shown, _printer(form, key_separator)):
                return
            printed += len(shown)
            if group and shown:
                consumer.commit({(r.topic, r.partition): r.offset + 1 for r in shown})
            if printed == count:
                return


@contextmanager
def _reading(
    connection: Connection, wanted: Wanted
) -> Iterator[tuple[Consumer, Iterator[list[Record]]]]:
    how: dict[str, Any] = {"enable.auto.commit": False}
    if wanted.group:
        how["auto.offset.reset"] = Position.parse(wanted.start).kind
    with (
        Admin(connection) as admin,
        Consumer(connection, wanted.group, **how) as consumer,
    ):
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


def _show(records: Iterable[Record], printed: Callable[[Record], bytes]) -> bool:
    """Print a batch; False when the reader of our stdout has gone, which is a way to say enough."""
    data = b"".join(map(printed, records))
    try:
        if data:
            write(data)
    except BrokenPipeError:
        return False
    return True


def _printer(form: Format, separator: str | None) -> Callable[[Record], bytes]:
    if form is Format.json:
        return lambda record: orjson.dumps(as_document(record), option=orjson.OPT_APPEND_NEWLINE)
    if form is Format.raw:
        return lambda record: record.value or b""
    shown = bytes.hex if form is Format.hex else _text
    between = "" if separator is None else separator
    return lambda record: _line(record, shown, between).encode(errors="surrogateescape")


def _line(record: Record, shown: Callable[[bytes], str], separator: str) -> str:
    value = shown(record.value or b"")
    return f"{shown(record.key or b'')}{separator}{value}\n" if separator else f"{value}\n"


def _text(data: bytes) -> str:
    # Bytes that are no UTF-8 go through as they are: a terminal shows them as it can.
    return data.decode(errors="surrogateescape")
