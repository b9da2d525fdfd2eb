"""Columns of text to the declared types, all values at once or one at a time.

`read_cell` is the meaning; `bulk_column` accepts no more than it does, with equal results, and refuses a
column as a whole when one value does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels import text_kernel as texts
from penstock.decode.kernels.arrow_kernel import arrow_type
from penstock.decode.kernels.bulk_text import (
    Bulk,
    bulk_date,
    bulk_decimal,
    bulk_local_time,
    bulk_timestamp,
)
from penstock.decode.kernels.json.strict import INTEGER_BITS
from penstock.decode.kernels.outcome import MisfitError
from penstock.pipeline.columns import Array, Decimal, Map, Scalar, Struct, Type

# Everything that a bulk conversion raises for a value that does not fit.
UNFIT_TEXT = (pa.ArrowException, ValueError, OverflowError)
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
_SHOWN = 40


def is_text_type(type_: Type) -> bool:
    """Return whether a value of the type is written as one text without structure."""
    return not isinstance(type_, Array | Map | Struct)


def read_cell(text: str, type_: Type) -> Any:
    """Return the value of one text, or raise a `MisfitError`.

    >>> read_cell("1.50", Decimal(5, 1))
    Decimal('1.5')
    """
    try:
        if isinstance(type_, Decimal):
            return texts.read_decimal(text, type_.precision, type_.scale)
        if isinstance(type_, Scalar):
            return _READERS[type_.name](text)
    except ValueError as error:
        given = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        message = f"found the text {given!r}, declared {type_.ddl()}: {error}"
        raise MisfitError("WrongType", message) from None
    raise MisfitError("WrongType", f"{type_.ddl()} is not read from text")


def bulk_column(type_: Type) -> Bulk:
    """Return the conversion of a text array; it raises one of `UNFIT_TEXT` when a value may not fit."""
    if isinstance(type_, Decimal):
        return bulk_decimal(type_)
    if isinstance(type_, Scalar) and type_.name in INTEGER_BITS:
        # Arrow reads hexadecimal digits, too.
        return lambda column: _without(column, "xX").cast(arrow_type(type_))
    return _BULK[type_.ddl()]


def _read_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("a boolean is written true or false")
    return text == "true"


def _integer_reader(bits: int) -> Callable[[str], int]:
    limit = 2 ** (bits - 1)

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise ValueError("a whole number is written in digits")
        # Python refuses to read thousands of digits.
        digits = text.lstrip("-").lstrip("0")
        number = int(digits[:21] or 0) * (-1 if text[0] == "-" else 1)
        if not -limit <= number < limit:
            raise ValueError(f"its range is {-limit} to {limit - 1}")
        return number

    return read


def _read_double(text: str) -> float:
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not _NUMBER.fullmatch(text):
        raise ValueError("a number is written like -1.5e3; NaN, Infinity and -Infinity are allowed")
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is too large for it")
    return number


def _read_float(text: str) -> float:
    number = _read_double(text)
    if math.isfinite(number) and abs(number) >= _LARGEST_FLOAT:
        raise ValueError("the number is too large for it")
    return number


_READERS: dict[str, Callable[[str], Any]] = {
    **{name: _integer_reader(bits) for name, bits in INTEGER_BITS.items()},
    "boolean": _read_boolean,
    "float": _read_float,
    "double": _read_double,
    "string": str,
    "binary": texts.read_base64,
    "date": texts.read_date,
    "timestamp": texts.read_instant,
    "timestamp_ntz": texts.read_local_time,
}


def _without(column: pa.Array, characters: str) -> pa.Array:
    data = column.buffers()[2]
    view = b"" if data is None else data.to_pybytes()
    if any(character.encode() in view for character in characters):
        raise ValueError("a text is not a number of digits")
    return column


def _bulk_boolean(column: pa.Array) -> pa.Array:
    true, false = pc.equal(column, "true"), pc.equal(column, "false")
    if pc.all(pc.or_(true, false)).as_py() is False:
        raise ValueError("a text is not a boolean")
    return true


def _bulk_double(column: pa.Array) -> pa.Array:
    return _finite(column.cast(pa.float64()))


def _bulk_float(column: pa.Array) -> pa.Array:
    return _finite(_bulk_double(column).cast(pa.float32()))


def _finite(numbers: pa.Array) -> pa.Array:
    if pc.all(pc.is_finite(numbers)).as_py() is False:
        raise ValueError("a number is too large, or not a number")
    return numbers


def _bulk_binary(column: pa.Array) -> pa.Array:
    given = column.to_pylist()
    return pa.array([None if each is None else texts.read_base64(each) for each in given])


_BULK: dict[str, Bulk] = {
    "boolean": _bulk_boolean,
    "float": _bulk_float,
    "double": _bulk_double,
    "string": lambda column: column,
    "binary": _bulk_binary,
    "date": bulk_date,
    "timestamp": bulk_timestamp,
    "timestamp_ntz": bulk_local_time,
}
