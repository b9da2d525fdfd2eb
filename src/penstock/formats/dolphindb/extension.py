"""The Arrow types for what DolphinDB has and Arrow lacks: Arrow's nearest, with DolphinDB's name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.formats.dolphindb import scalars

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


class WireScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of a type that Arrow lacks."""

    def as_py(self, **_options: Any) -> Any:
        """Give the value as the class in `scalars` that stands for it."""
        if self.value is None:
            return None
        return scalars.from_storage(self.type.dolphindb, self.value.as_py())


class WireType(pa.ExtensionType):  # type: ignore[misc]
    """A type of DolphinDB that Arrow lacks, kept as the Arrow type that is nearest to it.

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
            raise ValueError(f"penstock.dolphindb has no type {name!r} kept as {storage_type}")
        return cls(name)

    def __hash__(self) -> int:
        return hash(self.dolphindb)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WireType) and other.dolphindb == self.dolphindb

    def __arrow_ext_scalar_class__(self) -> type[WireScalar]:
        return WireScalar


pa.register_extension_type(WireType("MONTH"))
