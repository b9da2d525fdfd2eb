"""Types of Spark and types of databases, one beside the other: what fits into what, without loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

NESTED = (ArrayType, MapType, StructType, VariantType)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_MOST = 38
_SIZED = re.compile(r"^(?P<base>[^(]+?)\s*\((?P<sizes>[\d\s,]+)\)(?P<rest>.*)$")
SCALARS: tuple[type[DataType], ...] = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, StringType,
    BinaryType, DateType, TimestampType, TimestampNTZType,
)  # fmt: skip


@dataclass(frozen=True)
class Kinds:
    """How one database names its types.

    `names` has the database's type for each type of Spark, `back` the other way round; `texts` are
    further types that take a text and check it themselves, `json` those that take nested values.
    """

    names: Mapping[type[DataType], str]
    decimal: str
    back: Mapping[str, DataType]
    json: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def name(self, kind: DataType) -> str:
        """Return the database's type for this type of Spark."""
        if isinstance(kind, DecimalType):
            return f"{self.decimal}({kind.precision},{kind.scale})"
        if isinstance(kind, NESTED):
            return self.json[0]
        return self.names.get(type(kind), self.names[StringType])

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the type of Spark for a column; `wanted` where all of its values fit."""
        base, sizes = sized(kind)
        if base in self.json and isinstance(wanted, NESTED):
            return wanted
        if isinstance(self.back.get(base), StringType) or base in (*self.json, *self.texts):
            return wanted if is_text(wanted) else StringType()
        if base == self.decimal:
            return _decimal(sizes, wanted)
        return self.back.get(base)


def sized(kind: str) -> tuple[str, tuple[int, ...]]:
    """Take the sizes out of a type's name.

    >>> sized("numeric(10,2)"), sized("timestamp(6) with time zone"), sized("text")
    (('numeric', (10, 2)), ('timestamp with time zone', (6,)), ('text', ()))
    """
    if not (found := _SIZED.match(kind)):
        return kind, ()
    return found["base"] + found["rest"], tuple(int(size) for size in found["sizes"].split(","))


def is_text(kind: DataType) -> bool:
    """Say whether values of this type go out as text: text itself, and what no database has."""
    return not isinstance(kind, (*NESTED, DecimalType, *SCALARS)) or isinstance(kind, StringType)


def textual(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON and rare types as text; every other column as it is."""
    if isinstance(kind, NESTED):
        return f.to_json(column, {"ignoreNullFields": "false"})
    return column.cast("string") if is_text(kind) and not isinstance(kind, StringType) else column


def _decimal(sizes: tuple[int, ...], wanted: DataType) -> DataType:
    """Return a decimal column's type; one without sizes takes every whole and decimal number."""
    if not sizes:
        exact = isinstance(wanted, (DecimalType, *_DIGITS))
        return wanted if exact else DecimalType(_MOST, 18)
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if _DIGITS.get(type(wanted), precision + 1) <= precision - scale:
        return wanted
    if isinstance(wanted, DecimalType) and scale >= wanted.scale:
        whole = wanted.precision - wanted.scale
        return wanted if precision - scale >= whole else DecimalType(min(precision, _MOST), scale)
    return DecimalType(min(precision, _MOST), min(scale, _MOST))
