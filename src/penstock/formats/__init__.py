"""Bytes to values and back: one file for each format. `find_format` knows them by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from penstock.errors import ConfigError, missing_extra, nearest

# Where each one lives: loaded when it is first asked for, because some of them need an extra.
_PLACES = {
    "plain": "primitives:Plain",
    "json": "json:Json",
    "arrow": "arrow:Arrow",
    "dolphindb": "dolphindb:DolphinDB",
    "string": "primitives:String",
    "short": "primitives:Short",
    "integer": "primitives:Integer",
    "long": "primitives:Long",
    "float": "primitives:Float",
    "double": "primitives:Double",
    "bytes": "primitives:Bytes",
    "uuid": "primitives:Uuid",
    "auto": "detect:Auto",
}
_WITH_REGISTRY = {"avro": "Avro", "protobuf": "Protobuf", "json_schema": "JsonSchema"}
FORMATS: tuple[str, ...] = tuple(_PLACES)


class Format(Protocol):
    """One way to write values as bytes.

    Both methods raise `FormatError` for what they cannot take; a format that asks a schema registry
    may also raise `TransientError` (it is away) or `ConfigError` (it refuses). A null (None) never
    comes here: Kafka has its own. `topic` serves the formats that keep a schema per topic.
    """

    name: str

    def encode(self, value: Any, topic: str = "") -> bytes:
        """Return the bytes of a value."""
        ...

    def decode(self, data: bytes, topic: str = "") -> Any:
        """Return the value of some bytes: all of them, or an error."""
        ...


_made: dict[str, Format] = {}


def find_format(what: str | Format) -> Format:
    """Return a format by its name, in any case; an object that is a format already comes back as it is.

    >>> find_format("JSON").encode([1, 2])
    b'[1,2]'
    """
    if not isinstance(what, str):
        if callable(getattr(what, "encode", None)) and callable(getattr(what, "decode", None)):
            return what
        raise ConfigError(
            f"format must be a name ({', '.join(FORMATS)}) or a Format, not {type(what).__name__}"
        )
    name = what.lower()
    if name not in _made:
        _made[name] = _make(name)
    return _made[name]


def _make(name: str) -> Format:
    if name in _WITH_REGISTRY:
        made = _WITH_REGISTRY[name]
        raise ConfigError(
            f"format {name!r} needs a schema registry: give it as an object, "
            f"e.g. format={made}(registry, schema)"
        )
    if name not in _PLACES:
        raise ConfigError(
            f"format {name!r} is unknown; {nearest(name, [*FORMATS, *_WITH_REGISTRY])}"
        )
    module, _, class_name = _PLACES[name].partition(":")
    try:
        made_format: Format = getattr(import_module(f"{__name__}.{module}"), class_name)()
    except ModuleNotFoundError as error:
        raise missing_extra(error, f"the format {name!r}") from error
    return made_format


__all__ = ["FORMATS", "Format", "find_format"]
