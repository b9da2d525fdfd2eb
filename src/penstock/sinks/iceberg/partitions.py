"""What divides an Iceberg table, as it is written in options, in SQL and in Iceberg's own words."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, WithJsonSchema

from penstock.pipeline.names import quoted, unquoted

_QUOTED = r"`(?:``|[^`])+`"
_FORM = re.compile(
    r"(years|months|days|hours|bucket|truncate)"
    rf"\(\s*(?:(\d+)\s*,\s*)?({_QUOTED}|[^(),`]+?)\s*\)"
)
# What stands between two commas; a comma in backticks or in brackets is part of it.
_ITEM = re.compile(rf"(?:{_QUOTED}|\((?:{_QUOTED}|[^)])*\)|[^,])+")
_ICEBERGS = re.compile(r"(year|month|day|hour|bucket|truncate)(?:\[(\d+)\])?")


class Partition(NamedTuple):
    """A column, or a function of one."""

    column: str
    by: str = ""
    number: int | None = None

    @classmethod
    def read(cls, written: str) -> Partition:
        """Read it as it is written.

        >>> Partition.read("symbol").column, Partition.read("bucket(16, id)")
        ('symbol', Partition(column='id', by='bucket', number=16))
        >>> Partition.read("`a(b`").column, Partition.read("days(`a,b`)").column
        ('a(b', 'a,b')
        """
        if "(" not in written or re.fullmatch(_QUOTED, written):
            return cls(unquoted(written))
        match = _FORM.fullmatch(written.strip())
        needs_number = match is not None and match[1] in ("bucket", "truncate")
        if match is None or needs_number != (match[2] is not None):
            raise ValueError(
                f"'partition_by' has {written!r}; allowed: a column, years(column), months(column), "
                "days(column), hours(column), bucket(16, column), truncate(4, column)"
            )
        return cls(unquoted(match[3]), match[1], int(match[2]) if match[2] else None)

    @classmethod
    def of(cls, transform: str, column: str) -> Partition:
        """Make it from what Iceberg calls it.

        >>> [str(Partition.of(name, "x")) for name in ("identity", "day", "bucket[4]")]
        ['x', 'days(x)', 'bucket(4, x)']
        """
        match = _ICEBERGS.fullmatch(transform)
        if match is None:
            return cls(column)
        if match[2]:
            return cls(column, match[1], int(match[2]))
        return cls(column, f"{match[1]}s")

    def sql(self) -> str:
        """Return it as SQL takes it."""
        return self._written(quoted(self.column))

    def __str__(self) -> str:
        return self._written(quoted(self.column) if set("`(),") & set(self.column) else self.column)

    def _written(self, column: str) -> str:
        if not self.by:
            return column
        return f"{self.by}({column if self.number is None else f'{self.number}, {column}'})"


def _items(given: Any) -> Any:
    items = [item.strip() for item in _ITEM.findall(given)] if isinstance(given, str) else given
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return items
    return [str(Partition.read(item)) for item in items]


Partitions = Annotated[
    list[str],
    BeforeValidator(_items),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""Columns and functions of columns: a list, or a text with commas."""
