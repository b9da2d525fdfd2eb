"""What a caller gives for one message, brought into librdkafka's form, or refused in words that help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from penstock.errors import ConfigError, FormatError, RecordError
from penstock.formats.format_values import kind
from penstock.formats.primitives import utf8
from penstock.kafka.partitions import whole
from penstock.kafka.positions import epoch_ms

HeadersLike = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]
HeaderList = list[tuple[str, bytes | str | None]]

ANY_PARTITION = -1
TAKEN = frozenset({bytes, str, type(None)})
"""What goes to librdkafka as it is. It takes any memory, and would send a numpy number's raw bytes."""
_LAST_PARTITION = 2**31 - 1
_LAST_MOMENT = 2**63 - 1


def key_of(given: Any) -> bytes | str | None:
    """Return a key that no format writes: bytes, text, or a whole number, which is sent as text.

    >>> key_of(7), key_of("A"), key_of(None)
    ('7', b'A', None)
    """
    number = whole(given)
    return str(number) if number is not None else bytes_of(given, "key")


def bytes_of(given: Any, what: str = "value") -> bytes | str | None:
    """Return bytes of bytes, text or None; any other type needs a format."""
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return utf8(given)
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    raise FormatError(
        f"{what} {kind(given)}: without a format it is bytes or text; "
        "give format='json' (or another; for keys the producer's key_format)"
    )


def partition_of(given: Any) -> int:
    """Return a partition's number; -1 and None leave the choice to the producer."""
    number = ANY_PARTITION if given is None else whole(given)
    if number is None or not ANY_PARTITION <= number <= _LAST_PARTITION:
        raise ConfigError(
            f"partition {given!r} is not allowed; allowed: a whole number from 0 on, or None"
        )
    return number


def moment_of(given: Any) -> int:
    """Return milliseconds since 1970 of a number or a time (UTC where it names no zone); 0 for None.

    >>> moment_of(datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if given is None:
        return 0
    moment = epoch_ms(given) if isinstance(given, datetime) else whole(given)
    if moment is None or not 1 <= moment <= _LAST_MOMENT:
        raise RecordError(
            f"timestamp {given!r} cannot be written: give milliseconds since 1970, at least 1, or a time"
        )
    return moment


def headers_of(given: HeadersLike | None) -> HeaderList | None:
    """Return names and values as a list; the same one for every piece of a value that is split."""
    if given is None:
        return None
    try:
        pairs = given.items() if isinstance(given, Mapping) else given
        headers = [(name, value) for name, value in pairs]
    except (TypeError, ValueError):
        raise _no_headers(kind(given)) from None
    for name, value in headers:
        if not isinstance(name, str) or type(value) not in TAKEN:
            raise _no_headers(f"{kind(name)} with {kind(value)}")
        # Half of a surrogate pair ends the process: librdkafka's binding (2.16) does not check the name.
        if not (_is_unicode(name) and (not isinstance(value, str) or _is_unicode(value))):
            raise ConfigError(
                f"header {name!r}: {value!r} is not allowed: half of a surrogate pair is not text"
            )
        if "\0" in name:
            raise ConfigError(
                f"header {name!r} is not allowed: librdkafka ends names at a zero; leave it out"
            )
    return headers or None


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def topic_of(given: Any) -> str:
    """Return a topic's name, as far as can be said without the cluster."""
    if not isinstance(given, str) or "\0" in given:
        raise ConfigError(f"topic {given!r} is not allowed; allowed: the name of a topic, as text")
    return given


def _no_headers(given: str) -> ConfigError:
    return ConfigError(
        f"headers of {given} are not allowed; allowed: a mapping or pairs of names (text) and values "
        "(bytes, text or None)"
    )
