"""Parsing of broker addresses: the default port is 9092; IPv6 and lists are supported."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from penstock.config.secrets import mask

DEFAULT_PORT = 9092
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[\w:.%]+)\]|(?P<host>[\w.\-]+))(?::(?P<port>\d+))?")


def parse_brokers(value: Any) -> str:
    """Return broker addresses in the form `host:port,host:port`, or raise ValueError.

    >>> parse_brokers("localhost, kafka-2:9093")
    'localhost:9092,kafka-2:9093'
    >>> parse_brokers(["::1", "[fe80::2]:9094"])
    '[::1]:9092,[fe80::2]:9094'
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"{mask(repr(value))} is not allowed; allowed: a text, or a list of texts")
    addresses = [part.strip() for part in parts if part.strip()]
    if not addresses:
        raise ValueError("no broker is given; allowed: host:port, several with commas between")
    return ",".join(_address(address) for address in addresses)


def _address(text: str) -> str:
    if _is_ipv6(text):
        return f"[{text}]:{DEFAULT_PORT}"
    if "://" in text:
        raise ValueError(
            f"{mask(text)!r} is not an address; write host:port, the protocol goes into "
            "security.protocol"
        )
    match = _ADDRESS.fullmatch(text)
    if not match or (match["ipv6"] and not _is_ipv6(match["ipv6"])):
        raise ValueError(f"{mask(text)!r} is not an address; allowed: host, host:port, [ipv6]:port")
    port = int(match["port"] or DEFAULT_PORT)
    if not 1 <= port <= 65535:
        raise ValueError(f"{text!r} has port {port}; allowed: 1 .. 65535")
    host = f"[{match['ipv6']}]" if match["ipv6"] else match["host"]
    return f"{host}:{port}"


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
