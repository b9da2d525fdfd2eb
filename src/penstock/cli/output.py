"""All output of the command line: data goes to stdout, messages to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from penstock.config.printable import printable, printable_json, printable_lines
from penstock.config.secrets import mask


def messages() -> Console:
    """Return the console for messages; created on each call so that it follows a replaced sys.stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a message to stderr."""
    messages().print(printable_lines(mask(message)), markup=False)


def say_error(message: str) -> None:
    """Print an error to stderr."""
    console = messages()
    console.print("error: ", style="bold red", end="")
    console.print(printable_lines(mask(message)), markup=False)


def ask_first(question: str, otherwise: str) -> None:
    """Ask on stderr for confirmation; anything but yes prints the consequence and exits with 1."""
    messages().print(f"{printable_lines(question)} [y/N] ", end="", markup=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        say(otherwise)
        raise typer.Exit(1)


def counted(number: int, what: str) -> str:
    """Return a count with its noun in singular or plural.

    >>> counted(1, "record"), counted(1500, "record")
    ('1 record', '1500 records')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def print_json(value: Any) -> None:
    """Print one JSON document, with line breaks on a terminal."""
    options = orjson.OPT_APPEND_NEWLINE
    if not sys.stdout.isatty():
        return write(orjson.dumps(value, option=options))
    return write(printable_json(orjson.dumps(value, option=options | orjson.OPT_INDENT_2)))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on a terminal; tab-separated lines with a header into a file or a pipe."""
    cells = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        write("".join("\t".join(line) + "\n" for line in [list(columns), *cells]).encode())
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in cells:
        table.add_row(*line)
    Console(highlight=False, markup=False).print(table)


def write(data: bytes) -> None:
    """Write bytes to stdout without buffering: the reader of a pipe may be waiting."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
