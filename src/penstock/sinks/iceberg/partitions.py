"""What divides an Iceberg table, as it is written in options and as Spark takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f

from penstock.sinks.lake.rows import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

_OF_TIME = {"years": f.years, "months": f.months, "days": f.days, "hours": f.hours}
_FORM = re.compile(
    r"(years|months|days|hours|bucket|truncate)\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*\)"
)


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
        """
        if "(" not in written:
            return cls(written)
        match = _FORM.fullmatch(written.strip())
        needs_number = match is not None and match[1] in ("bucket", "truncate")
        if match is None or needs_number != (match[2] is not None):
            raise ValueError(
                f"'partition_by' has {written!r}; allowed: a column, years(column), months(column), "
                "days(column), hours(column), bucket(16, column), truncate(4, column)"
            )
        return cls(match[3], match[1], int(match[2]) if match[2] else None)

    def function(self) -> Column:
        """Return it as Spark's function."""
        column = f.col(quoted(self.column))
        if not self.by:
            return column
        if self.by == "bucket":
            return f.bucket(int(self.number or 1), column)
        if self.by == "truncate":
            return f.call_function("truncate", f.lit(self.number), column)
        return _OF_TIME[self.by](column)
