"""Every configuration key: its names, its type, its allowed values, and its users.

The keys themselves are data in key_table.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from penstock.config import key_table
from penstock.config.brokers import parse_brokers
from penstock.config.secrets import MASK, is_secret_key, mask

Role = Literal["common", "producer", "consumer"]
Value = str | int | float | bool

_TRUE = {"true", "t", "1"}
_FALSE = {"false", "f", "0"}


@dataclass(frozen=True)
class Key:
    """One configuration key; `name` is the one that Penstock uses, `jvm` the Java client's."""

    name: str
    role: Role
    kind: str
    words: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    jvm: str | None = None
    aliases: tuple[str, ...] = ()
    topic: bool = False

    @property
    def secret(self) -> bool:
        """Return whether the value must never be shown."""
        return is_secret_key(self.name)

    @property
    def allowed(self) -> str:
        """Return a description of the allowed values."""
        if self.kind in ("int", "float"):
            noun = "whole numbers" if self.kind == "int" else "numbers"
            return f"{noun} {self.low} .. {self.high}"
        if self.kind == "acks":
            return f"all, or whole numbers {self.low} .. {self.high}"
        if self.kind in ("enum", "flags"):
            several = " (several with commas between)" if self.kind == "flags" else ""
            return ", ".join(self.words) + several
        return {"bool": "true, false", "brokers": "host:port, ..."}.get(self.kind, "a text")

    def read(self, value: Any) -> Value:
        """Return a value in the canonical form of this key, or raise ValueError.

        >>> find_key("session.timeout.ms").read("6000"), find_key("compression.codec").read("GZIP")
        (6000, 'gzip')
        """
        try:
            return _READERS[self.kind](self, value)
        except _WrongFormError:
            shown = MASK if self.secret else mask(repr(value))
        raise ValueError(f"{shown} is not allowed; allowed: {self.allowed}")


class _WrongFormError(Exception):
    """The value does not have the form of its key; says nothing, so that it cannot leak."""


def _read_str(_key: Key, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise _WrongFormError
    return str(value)


def _read_bool(_key: Key, value: Any) -> bool:
    word = str(value).lower()
    if not isinstance(value, (bool, int, str)) or word not in _TRUE | _FALSE:
        raise _WrongFormError
    return word in _TRUE


def _read_int(key: Key, value: Any) -> int:
    number = _read_float(key, value)
    if number != int(number):
        raise _WrongFormError
    return int(number)


def _read_float(key: Key, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _WrongFormError
    text = str(value).strip()
    if not re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        raise _WrongFormError
    number = float(text) if "." in text else int(text)
    if key.low is not None and key.high is not None and not key.low <= number <= key.high:
        raise _WrongFormError
    return number


def _read_acks(key: Key, value: Any) -> str | int:
    if isinstance(value, str) and value.strip().lower() == "all":
        return "all"
    return _read_int(key, value)


def _read_enum(key: Key, value: Any) -> str:
    given = value.strip().lower() if isinstance(value, str) else None
    for word in key.words:
        if word.lower() == given:
            return word
    raise _WrongFormError


def _read_flags(key: Key, value: Any) -> str:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not parts:
        raise _WrongFormError
    return ",".join(_read_enum(key, part) for part in parts)


_READERS: Mapping[str, Callable[[Key, Any], Value]] = {
    "str": _read_str,
    "bool": _read_bool,
    "int": _read_int,
    "float": _read_float,
    "acks": _read_acks,
    "enum": _read_enum,
    "flags": _read_flags,
    "brokers": lambda _key, value: parse_brokers(value),
}


def find_key(name: str) -> Key | None:
    """Find a key by any of its names.

    >>> find_key("metadata.broker.list").name
    'bootstrap.servers'
    """
    return _BY_NAME.get(name)


def near_key(name: Any) -> Key | None:
    """Find the key that was probably meant by a name that is not known."""
    if java := _BY_JVM.get(name):
        return java
    close = get_close_matches(str(name), _BY_NAME, n=1, cutoff=0.6)
    return _BY_NAME[close[0]] if close else None


def unknown_key(name: Any) -> str:
    """Return a message that a key is unknown, with the one that was probably meant.

    >>> unknown_key("bootstrap.server")
    "unknown key 'bootstrap.server': did you mean 'bootstrap.servers'?"
    >>> unknown_key("buffer.memory")
    "unknown key 'buffer.memory': that is the Java name, write 'queue.buffering.max.kbytes'"
    """
    if name == "sasl.jaas.config":
        return f"unknown key {name!r}: give sasl.username and sasl.password, Penstock writes JAAS"
    if java := _BY_JVM.get(name):
        return f"unknown key {name!r}: that is the Java name, write {java.name!r}"
    if close := get_close_matches(str(name), _BY_NAME, n=1, cutoff=0.6):
        return f"unknown key {name!r}: did you mean {close[0]!r}?"
    return f"unknown key {name!r}: allowed are librdkafka's configuration properties"


def _rows(text: str, role: Role, topic: bool = False) -> Iterator[Key]:
    for line in text.strip().splitlines():
        name, form, java, *aliases = line.split()
        kind, _, allowed = form.partition(":")
        words = [] if ".." in allowed and kind != "acks" else allowed.split(",")
        low, _, high = allowed.rpartition(",")[2].partition("..")
        limits: tuple[int | None, int | None] = (int(low), int(high)) if high else (None, None)
        jvm = {"=": name, "-": None}.get(java, java)
        yield Key(name, role, kind, tuple(words), limits[0], limits[1], jvm, tuple(aliases), topic)


KEYS: tuple[Key, ...] = (
    *_rows(key_table.COMMON, "common"),
    *_rows(f"debug flags:{key_table.DEBUG_FLAGS} -", "common"),
    *_rows(key_table.SECURITY, "common"),
    *_rows(key_table.PRODUCER, "producer"),
    *_rows(key_table.PRODUCER_TOPIC, "producer", topic=True),
    *_rows(key_table.CONSUMER, "consumer"),
    *_rows(key_table.CONSUMER_TOPIC, "consumer", topic=True),
)
_BY_NAME = {name: key for key in KEYS for name in (key.name, *key.aliases)}
_BY_JVM = {key.jvm: key for key in KEYS if key.jvm and key.jvm not in _BY_NAME}
