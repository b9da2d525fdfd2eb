"""What the plugin's functions take, brought into the form that Penstock's API takes, or refused."""

from __future__ import annotations

from typing import Any

from penstock.errors import ConfigError
from penstock.kafka.handle import Partition
from penstock.kafka.places import aligned, whole

_FORMATS = {"JSON": "json", "DOLPHINDB": "dolphindb", "PLAIN": "plain"}


def format_of(marshalType: Any, default: str) -> str:
    """The format that a marshalType, or the boolean `json` of version 1.30, names.

    >>> [format_of(given, "auto") for given in ("PLAIN", True, False, None)]
    ['plain', 'json', 'dolphindb', 'auto']
    """
    if marshalType is None:
        return default
    if type(marshalType).__name__ in ("bool", "bool_"):
        return "json" if marshalType else "dolphindb"
    if isinstance(marshalType, str) and marshalType.upper() in _FORMATS:
        return _FORMATS[marshalType.upper()]
    raise ConfigError(
        f"marshalType {marshalType!r} is not allowed; allowed: {', '.join(_FORMATS)}, "
        "or True (JSON) and False (DOLPHINDB)"
    )


def milliseconds(timeout: Any) -> int:
    """A time to wait.

    >>> milliseconds(-1)
    Traceback (most recent call last):
    penstock.errors.ConfigError: timeout -1 is not allowed; allowed: milliseconds, from 0 on
    """
    found = whole(timeout)
    if found is None or found < 0:
        raise ConfigError(f"timeout {timeout!r} is not allowed; allowed: milliseconds, from 0 on")
    return found


def wait_of(timeout: Any) -> int | None:
    """A time to wait, or None for the handle's own."""
    return None if timeout is None else milliseconds(timeout)


def offsets_at(topic: Any, partition: Any, offset: Any) -> dict[Partition, int]:
    """Offsets by partition, of three values or three vectors of one length; none may be left out.

    >>> offsets_at("test", 0, 7)
    {('test', 0): 7}
    """
    if topic is None or partition is None or offset is None:
        raise ConfigError(
            "topic, partition and offset belong together: give all three, each one value or a vector "
            "of the same length"
        )
    return aligned(topic, partition, offset)
