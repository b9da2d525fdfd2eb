"""Where everything that the command line prints goes: data to stdout, words to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from penstock.config.secrets import mask


def messages() -> Console:
    """The console for people; looked up anew so that it follows a replaced sys.stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Tell the user something that is not data."""
    messages().print(message, markup=False)


def say_error(message: str) -> None:
    """Tell the user what went wrong."""
    console = messages()
    console.print("error: ", style="bold red", end="")
    console.print(mask(message), markup=False)


def confirmed(question: str) -> bool:
    """Ask on stderr, so that stdout carries data only; anything but yes is no."""
    messages().print(f"{question} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask_first(question: str, otherwise: str) -> None:
    """Go on only when a person says yes; else say what that means, and end with 1."""
    if not confirmed(question):
        say(otherwise)
        raise typer.Exit(1)


def counted(number: int, what: str) -> str:
    """A number of things, in words that fit it.

    >>> counted(1, "record"), counted(1500, "record")
    ('1 record', '1500 records')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def print_json(value: Any) -> None:
    """One JSON document; with line breaks where a person looks at it."""
    options = orjson.OPT_APPEND_NEWLINE
    if sys.stdout.isatty():
        options |= orjson.OPT_INDENT_2
    write(orjson.dumps(value, option=options))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; tab-separated lines with a header when stdout is a file or a pipe."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
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
    """Bytes to stdout, at once: a reader on the other end of a pipe may be waiting."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
