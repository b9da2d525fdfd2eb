"""Arrow arrays of Python objects, and the Arrow type for addresses, which Arrow itself lacks."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from uuid import UUID

import pyarrow as pa

_NULL = type(None)


class IpScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One address."""

    def as_py(self, **_options: Any) -> IPv4Address | IPv6Address | None:
        """Give the address as Python has it."""
        return None if self.value is None else ip_address(self.value.as_py())


class IpType(pa.ExtensionType):  # type: ignore[misc]
    """IPv4 and IPv6 addresses, kept as text: other readers see the text."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "penstock.ip")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _data: bytes) -> IpType:
        if storage_type != pa.string():
            raise ValueError(f"penstock.ip is kept as string, not as {storage_type}")
        return cls()

    def __arrow_ext_scalar_class__(self) -> type[IpScalar]:
        return IpScalar


def from_objects(items: Sequence[Any]) -> pa.Array:
    """Give an Arrow array of Python objects, UUIDs and addresses included.

    >>> from_objects([UUID(int=1), None])[0].as_py()
    UUID('00000000-0000-0000-0000-000000000001')
    """
    kinds = set(map(type, items)) - {_NULL}
    if kinds == {UUID}:
        return pa.array([None if each is None else each.bytes for each in items], pa.uuid())
    if kinds and kinds <= {IPv4Address, IPv6Address}:
        texts = pa.array([None if each is None else str(each) for each in items], pa.string())
        return pa.ExtensionArray.from_storage(IpType(), texts)
    if any(kind.__module__ == "numpy" for kind in kinds):
        return _of_numpy(items, kinds)
    if any(kind.__module__.startswith("pandas.") for kind in kinds):
        return _of_pandas(items)
    return pa.array(items)


def _of_numpy(items: Sequence[Any], kinds: set[type]) -> pa.Array:
    import numpy as np  # noqa: PLC0415

    if len(kinds) == 1 and not any(each is None for each in items):
        found = np.array(items)
        return pa.array(found if found.ndim == 1 else list(found))
    return pa.array(items)


def _of_pandas(items: Sequence[Any]) -> pa.Array:
    import pandas as pd  # noqa: PLC0415

    # As Python's own datetimes they would lose their nanoseconds.
    return pa.array(pd.Series(items), from_pandas=True)


pa.register_extension_type(IpType())
