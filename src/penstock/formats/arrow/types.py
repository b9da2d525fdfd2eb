"""The Arrow type for addresses, which Arrow itself lacks."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pyarrow as pa


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

    def __hash__(self) -> int:
        return hash(self.extension_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IpType)

    def __arrow_ext_scalar_class__(self) -> type[IpScalar]:
        return IpScalar


pa.register_extension_type(IpType())
