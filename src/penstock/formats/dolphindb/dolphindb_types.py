"""DolphinDB's types: code, width on the wire, null, and the Arrow type that a vector of it becomes.

A type that Arrow lacks is an extension type: the nearest type of Arrow with DolphinDB's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.formats.dolphindb import scalars

DAY = 86_400
MONTHS_BEFORE_1970 = 1970 * 12
ANY_CODE = 25
ARRAY_OFFSET = 64
SYMBOL_WITH_BASE = 145

_BYTE = np.dtype("u1")
_SECONDS = pa.timestamp("s")
_STORED_AS = {
    "MONTH": pa.date32(),
    "MINUTE": pa.time32("s"),
    "DATEHOUR": _SECONDS,
    "DATEMINUTE": _SECONDS,
    "IPADDR": pa.binary(16),
    "INT128": pa.binary(16),
    "COMPLEX": pa.list_(pa.float64(), 2),
    "POINT": pa.list_(pa.float64(), 2),
    "DURATION": pa.list_(pa.int32(), 2),
    "ANY": pa.binary(),
}
SCALAR, VECTOR, PAIR, MATRIX, SET, DICTIONARY, TABLE = range(7)


class WireScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of a type that Arrow lacks."""

    def as_py(self, **_options: Any) -> Any:
        """Return the value as its class in `scalars`."""
        if self.value is None:
            return None
        return scalars.FROM_STORAGE[self.type.dolphindb](self.value.as_py())


class WireType(pa.ExtensionType):  # type: ignore[misc]
    """A type of DolphinDB that Arrow lacks, stored as the nearest Arrow type.

    >>> pa.array([None], WireType("MONTH")).type.storage_type
    DataType(date32[day])
    """

    def __init__(self, dolphindb: str) -> None:
        self.dolphindb = dolphindb
        super().__init__(_STORED_AS[dolphindb], "penstock.dolphindb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.dolphindb.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, data: bytes) -> WireType:
        name = data.decode()
        if _STORED_AS.get(name) != storage_type:
            raise ValueError(f"penstock.dolphindb has no type {name!r} stored as {storage_type}")
        return cls(name)

    def __hash__(self) -> int:
        return hash(self.dolphindb)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WireType) and other.dolphindb == self.dolphindb

    def __arrow_ext_scalar_class__(self) -> type[WireScalar]:
        return WireScalar


pa.register_extension_type(WireType("MONTH"))


@dataclass(frozen=True)
class Type:
    """One type of DolphinDB.

    `kind` says how its items are read and written; `unit` is how many of Arrow's units one of DolphinDB's
    is (an hour is 3600 seconds), `limit` the first number that is too large (for times of day).
    """

    code: int
    name: str
    kind: str
    dtype: np.dtype[Any] = _BYTE
    arrow: pa.DataType = None
    unit: int = 1
    limit: int | None = None
    digits: int = 0

    @cached_property
    def null(self) -> Any:
        """Return the number that represents null."""
        if self.dtype.kind == "f":
            return np.finfo(self.dtype).min
        return np.iinfo(self.dtype).min

    @property
    def storage(self) -> pa.DataType:
        """Return the Arrow type that holds the values of an extension type, or the type itself."""
        extended = isinstance(self.arrow, pa.BaseExtensionType)
        return self.arrow.storage_type if extended else self.arrow


def _number(code: int, name: str, dtype: str, arrow: pa.DataType, **more: Any) -> Type:
    return Type(code, name, "number", np.dtype(dtype), arrow, **more)


def _wide(code: int, name: str, arrow: pa.DataType) -> Type:
    return Type(code, name, "reversed", np.dtype("V16"), arrow)


_INT, _LONG = "<i4", "<i8"
TYPES = (
    Type(0, "VOID", "void", arrow=pa.null()),
    Type(1, "BOOL", "bool", np.dtype("i1"), pa.bool_()),
    _number(2, "CHAR", "i1", pa.int8()),
    _number(3, "SHORT", "<i2", pa.int16()),
    _number(4, "INT", _INT, pa.int32()),
    _number(5, "LONG", _LONG, pa.int64()),
    _number(6, "DATE", _INT, pa.date32()),
    Type(7, "MONTH", "month", np.dtype(_INT), WireType("MONTH")),
    _number(8, "TIME", _INT, pa.time32("ms"), limit=DAY * 1000),
    _number(9, "MINUTE", _INT, WireType("MINUTE"), unit=60, limit=DAY // 60),
    _number(10, "SECOND", _INT, pa.time32("s"), limit=DAY),
    _number(11, "DATETIME", _INT, pa.timestamp("s")),
    _number(12, "TIMESTAMP", _LONG, pa.timestamp("ms")),
    _number(13, "NANOTIME", _LONG, pa.time64("ns"), limit=DAY * 10**9),
    _number(14, "NANOTIMESTAMP", _LONG, pa.timestamp("ns")),
    _number(15, "FLOAT", "<f4", pa.float32()),
    _number(16, "DOUBLE", "<f8", pa.float64()),
    Type(17, "SYMBOL", "symbol", arrow=pa.dictionary(pa.int32(), pa.string())),
    Type(18, "STRING", "text", arrow=pa.string()),
    _wide(19, "UUID", pa.uuid()),
    Type(ANY_CODE, "ANY", "any", arrow=WireType("ANY")),
    _number(28, "DATEHOUR", _INT, WireType("DATEHOUR"), unit=3600),
    _number(29, "DATEMINUTE", _INT, WireType("DATEMINUTE"), unit=60),
    _wide(30, "IPADDR", WireType("IPADDR")),
    _wide(31, "INT128", WireType("INT128")),
    Type(32, "BLOB", "blob", arrow=pa.binary()),
    Type(34, "COMPLEX", "twin", np.dtype("<f8"), WireType("COMPLEX")),
    Type(35, "POINT", "twin", np.dtype("<f8"), WireType("POINT")),
    Type(36, "DURATION", "twin", np.dtype(_INT), WireType("DURATION")),
    Type(37, "DECIMAL32", "decimal", np.dtype(_INT), digits=9),
    Type(38, "DECIMAL64", "decimal", np.dtype(_LONG), digits=18),
    Type(39, "DECIMAL128", "decimal", np.dtype("V16"), digits=38),
)
BY_CODE = {each.code: each for each in TYPES}
BY_NAME = {each.name: each for each in TYPES}
FIXED_KINDS = frozenset(("bool", "number", "month", "reversed", "twin", "decimal"))


def width(type_: Type) -> int:
    """Count the bytes of one item of a fixed-width type."""
    return type_.dtype.itemsize * (2 if type_.kind == "twin" else 1)
