"""Casts with the results of Java's: integers lose their upper bits, fractions stop at the limits."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.steps.connect_transforms.date_text import MILLIS_OF_DAY, date_text

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
SPARK = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
}
_INT, _LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_INTEGER = r"\A[+-]?[0-9]+\z"
_FRACTION = (
    r"\A[\x00-\x20]*[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?"
    r"|0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+[fFdD]?)[\x00-\x20]*\z"
)


def from_integer(column: Column, target: str) -> Column:
    """Cast an integer of any size."""
    if target in BITS:
        return _low_bits(column.cast("bigint"), target)
    if target == "boolean":
        return column != 0
    return column.cast(SPARK[target])


def from_fraction(column: Column, target: str) -> Column:
    """Cast a float or double."""
    if target in BITS:
        limits = _LONG if target == "int64" else _INT
        return _low_bits(_truncated(column, limits), target)
    if target == "boolean":
        return _truncated(column, _LONG) != 0
    return column.cast(SPARK[target])


def from_decimal(column: Column, target: str) -> Column:
    """Cast an exact number; integers keep the lower bits of its whole part."""
    if target in BITS or target == "boolean":
        whole = f.when(column < 0, f.ceil(column)).otherwise(f.floor(column)).cast("decimal(38,0)")
        bits = BITS.get(target, 64)
        if target == "boolean":
            return _wrapped(whole, 64) != 0
        return _wrapped(whole, bits).cast(SPARK[target])
    return column.cast(SPARK[target])


def from_boolean(column: Column, target: str) -> Column:
    """Cast true and false to 1 and 0, or to their names."""
    return column.cast(SPARK[target])


def from_string(column: Column, target: str) -> Column:
    """Cast a text; one that is not a number raises."""
    if target == "boolean":
        return f.lower(column) == "true"
    if target in BITS:
        return _checked(column, _INTEGER, lambda text: text.cast(SPARK[target]), target)
    if target in ("float32", "float64"):
        return _checked(column, _FRACTION, lambda text: _fraction(text, target), target)
    return column


def moment_text(millis: Column) -> Column:
    """Return a moment as Connect prints it: a time within the first day, a date at midnight, or both."""
    return (
        f.when(millis < MILLIS_OF_DAY, date_text(millis, "HH:mm:ss.SSS'Z'"))
        .when(f.pmod(millis, f.lit(MILLIS_OF_DAY)) == 0, date_text(millis, "yyyy-MM-dd"))
        .otherwise(date_text(millis, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"))
    )


def _fraction(text: Column, target: str) -> Column:
    plain = f.regexp_replace(f.trim(text), r"[fFdD]\z", "")
    return plain.cast(SPARK[target])


def _checked(text: Column, regex: str, cast: Callable[[Column], Column], target: str) -> Column:
    refuse = f.raise_error(f.concat(f.lit(f"not a number of type {target}: "), text))
    return (
        f.when(f.rlike(text, f.lit(regex)), cast(text))
        .when(text.isNotNull(), refuse.cast(SPARK[target]))
    )  # fmt: skip


def _low_bits(long: Column, target: str) -> Column:
    unused = 64 - BITS[target]
    if not unused:
        return long
    return f.shiftright(f.shiftleft(long, unused), unused).cast(SPARK[target])


def _truncated(fraction: Column, limits: tuple[int, int]) -> Column:
    """Return the whole part of a fraction as a long, within limits; 0 for what is not a number."""
    least, most = limits
    number = fraction.cast("double")
    return (
        f.when(f.isnan(number), f.lit(0))
        .when(number >= float(most), f.lit(most))
        .when(number <= float(least), f.lit(least))
        .when(number.isNotNull(), number.cast("bigint"))
    )


def _wrapped(whole: Column, bits: int) -> Column:
    """Return the lower bits of a whole decimal as a signed integer."""
    size = f.lit(str(2**bits)).cast("decimal(38,0)")
    rest = f.pmod(whole, size)
    half = f.lit(str(2 ** (bits - 1))).cast("decimal(38,0)")
    return f.when(rest >= half, rest - size).otherwise(rest).cast("bigint")
