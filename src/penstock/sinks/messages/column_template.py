"""Texts with columns in them, as `orders-{at:%Y.%m}`: read once, then made by Spark for each row."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DateType, StructType, TimestampNTZType, TimestampType

from penstock.errors import ConfigError, nearest
from penstock.pipeline.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

# A column, a doubled brace, or a brace that belongs to nothing.
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}:]+)(?::([^{}]*))?\}|[{}]")
_TIMES = {"Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss", "j": "DDD"}


class _Part(NamedTuple):
    text: str
    column: str | None = None
    # How a time is written, in Spark's letters.
    pattern: str | None = None


@dataclass(frozen=True)
class ColumnTemplate:
    """A text with columns; `{{` and `}}` are braces.

    >>> template = ColumnTemplate.read("orders-{region}-{at:%Y.%m}")
    >>> template.columns, template.prefix, template.wildcard
    (('region', 'at'), 'orders-', 'orders-*-*')
    >>> ColumnTemplate.read("a{{b}}").prefix
    'a{b}'
    """

    parts: tuple[_Part, ...]

    @classmethod
    def read(cls, text: str) -> ColumnTemplate:
        """Read a template, or raise what is wrong with it."""
        parts: list[_Part] = []
        at = 0
        for token in _TOKEN.finditer(text):
            parts.append(_Part(text[at : token.start()]))
            parts.append(_part(token, text))
            at = token.end()
        parts.append(_Part(text[at:]))
        return cls(tuple(part for part in parts if part.text or part.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns, in their order."""
        return tuple(part.column for part in self.parts if part.column)

    @property
    def prefix(self) -> str:
        """Return the text before the first column; all of it where there is none."""
        texts = []
        for part in self.parts:
            if part.column:
                break
            texts.append(part.text)
        return "".join(texts)

    @property
    def wildcard(self) -> str:
        """Return a pattern that every text of it matches."""
        return re.sub(
            r"\*+", "*", "".join("*" if part.column else part.text for part in self.parts)
        )

    def check(self, option: str, rows: StructType) -> None:
        """Refuse columns that do not exist, or that cannot be part of a text."""
        for part in self.parts:
            if part.column is None:
                continue
            if part.column not in rows.names:
                raise ConfigError(
                    f"{option!r} has the column {part.column!r}, which does not exist; "
                    f"{nearest(part.column, rows.names)}"
                )
            kind = rows[part.column].dataType
            if part.pattern and not isinstance(kind, (TimestampType, TimestampNTZType, DateType)):
                raise ConfigError(
                    f"{option!r} writes the column {part.column!r} as a date, and it is "
                    f"{kind.simpleString()}: it must be a timestamp or a date; a step can make it so"
                )
            if isinstance(kind, BinaryType) or hasattr(kind, "elementType") or _is_nested(kind):
                raise ConfigError(
                    f"{option!r} has the column {part.column!r}, which is {kind.simpleString()}: it must "
                    "be a text, a number, a boolean or a time; a step can make it so"
                )

    def expression(self, written: Callable[[Column], Column] = lambda text: text) -> Column:
        """Return the text of a row; null where one of the columns is null.

        `written` is what becomes of the text of each column.
        """
        return f.concat(*(_column(part, written) for part in self.parts), f.lit(""))


def _part(token: re.Match[str], text: str) -> _Part:
    if token[0] in ("{{", "}}"):
        return _Part(token[0][0])
    if token[1] is None:
        raise ValueError(
            f"{text!r} has {token[0]!r} alone; write columns as {{name}} or {{name:%Y.%m}}, and a brace "
            "twice where it is meant"
        )
    pattern = None if token[2] is None else _pattern(token[2], text)
    return _Part("", token[1].strip(), pattern)


def _pattern(given: str, text: str) -> str:
    """Return a pattern of Spark for one of strftime."""
    made = []
    for piece in re.findall(r"%.?|[^%]+", given):
        if not piece.startswith("%"):
            made.append("'" + piece.replace("'", "''") + "'")
        elif piece[1:] in _TIMES:
            made.append(_TIMES[piece[1:]])
        else:
            known = ", ".join(f"%{letter}" for letter in _TIMES)
            raise ValueError(f"{piece!r} in {text!r} is not a part of a date; allowed: {known}")
    if not made:
        raise ValueError(f"{text!r} has a date without a form; write it as {{name:%Y.%m.%d}}")
    return "".join(made)


def _is_nested(kind: object) -> bool:
    return hasattr(kind, "fields") or hasattr(kind, "valueType")


def _column(part: _Part, written: Callable[[Column], Column]) -> Column:
    if part.column is None:
        return f.lit(part.text)
    given = f.col(quoted(part.column))
    if part.pattern:
        return written(f.date_format(given, part.pattern))
    return written(given.cast("string"))
