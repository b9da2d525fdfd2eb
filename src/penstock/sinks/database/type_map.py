"""Types of Spark and of databases: which values fit into which column, without loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.pipeline.json_options import EXACT_JSON

NESTED = (t.ArrayType, t.MapType, t.StructType, t.VariantType)
_DIGITS: dict[type[t.DataType], int] = {
    t.ByteType: 3, t.ShortType: 5, t.IntegerType: 10, t.LongType: 19
}  # fmt: skip
_MOST = 38
_SIZED = re.compile(r"^(?P<base>[^(]+?)\s*\((?P<sizes>[\d\s,]+)\)(?P<rest>.*)$")
_SCALARS: tuple[type[t.DataType], ...] = (
    t.BooleanType, *_DIGITS, t.FloatType, t.DoubleType, t.DecimalType, t.StringType, t.BinaryType,
    t.DateType, t.TimestampType, t.TimestampNTZType,
)  # fmt: skip


@dataclass(frozen=True)
class TypeMap:
    """How one database names its types.

    `names` has the database's type for each type of Spark, `also` further types of the database and
    what they are in Spark; `texts` are types that take a text and check it themselves, `json` those
    that take nested values.
    """

    names: Mapping[type[t.DataType], str]
    decimal: str
    also: Mapping[str, t.DataType]
    json: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def name(self, kind: t.DataType) -> str:
        """Return the database's type for this type of Spark."""
        if isinstance(kind, t.DecimalType):
            return f"{self.decimal}({kind.precision},{kind.scale})"
        if isinstance(kind, NESTED):
            return self.json[0]
        return self.names.get(type(kind), self.names[t.StringType])

    def known(self, kind: str, wanted: t.DataType) -> t.DataType | None:
        """Return the type of Spark for a column; `wanted` where all of its values fit."""
        base, sizes = sized(kind)
        if base in self.json and isinstance(wanted, NESTED):
            return wanted
        back = {name: spark() for spark, name in self.names.items()} | dict(self.also)
        if isinstance(back.get(base), t.StringType) or base in (*self.json, *self.texts):
            return wanted if is_text(wanted) else t.StringType()
        if base == self.decimal:
            return _decimal(sizes, wanted)
        return back.get(base)


def sized(kind: str) -> tuple[str, tuple[int, ...]]:
    """Take the sizes out of a type's name.

    >>> sized("numeric(10,2)"), sized("timestamp(6) with time zone"), sized("text")
    (('numeric', (10, 2)), ('timestamp with time zone', (6,)), ('text', ()))
    """
    if not (match := _SIZED.match(kind)):
        return kind, ()
    return match["base"] + match["rest"], tuple(int(size) for size in match["sizes"].split(","))


def is_text(kind: t.DataType) -> bool:
    """Return whether values of this type are sent as text: text itself, and what no database has."""
    return not isinstance(kind, (*NESTED, *_SCALARS)) or isinstance(kind, t.StringType)


def textual(column: Column, kind: t.DataType) -> Column:
    """Return nested values as JSON and rare types as text; every other column as it is."""
    if isinstance(kind, NESTED):
        return f.to_json(column, EXACT_JSON)
    return column.cast("string") if is_text(kind) and not isinstance(kind, t.StringType) else column


def _decimal(sizes: tuple[int, ...], wanted: t.DataType) -> t.DataType:
    """Return a decimal column's type; one without sizes takes every whole and decimal number."""
    if not sizes:
        exact = isinstance(wanted, (t.DecimalType, *_DIGITS))
        return wanted if exact else t.DecimalType(_MOST, 18)
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if _DIGITS.get(type(wanted), precision + 1) <= precision - scale:
        return wanted
    if isinstance(wanted, t.DecimalType) and scale >= wanted.scale:
        whole = wanted.precision - wanted.scale
        return wanted if precision - scale >= whole else t.DecimalType(min(precision, _MOST), scale)
    return t.DecimalType(min(precision, _MOST), min(scale, _MOST))
