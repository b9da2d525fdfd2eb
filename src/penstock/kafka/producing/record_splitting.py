"""Values that are too large for one message: vectors and tables go out in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from penstock.errors import ConfigError, FormatError
from penstock.formats.format_values import cut, rows, settle

BUFFER_SIZE = 900_000
MESSAGE_SIZE = 10_000


class Sizes:
    """How large a message may be: `message` for a piece of a vector or table, `buffer` for any value.

    >>> sizes = Sizes()
    >>> sizes.buffer, sizes.message
    (900000, 10000)
    >>> sizes.message = 1_000_000
    Traceback (most recent call last):
    penstock.errors.ConfigError: message size 1000000 is not allowed; allowed: 1 .. 900000 (buffer size)
    """

    def __init__(self, buffer: int = BUFFER_SIZE, message: int = MESSAGE_SIZE) -> None:
        self._buffer, self._message = buffer, 1
        self.buffer = buffer
        self.message = message

    @property
    def buffer(self) -> int:
        """Return the maximum bytes of one value."""
        return self._buffer

    @buffer.setter
    def buffer(self, size: int) -> None:
        if size < self._message:
            raise ConfigError(
                f"buffer size {size} is not allowed; allowed: {self._message} (the message size) or more"
            )
        self._buffer = size

    @property
    def message(self) -> int:
        """Return the maximum bytes of a piece of a vector or table."""
        return self._message

    @message.setter
    def message(self, size: int) -> None:
        if not 1 <= size <= self._buffer:
            raise ConfigError(
                f"message size {size} is not allowed; allowed: 1 .. {self._buffer} (buffer size)"
            )
        self._message = size

    def pieces(self, value: Any, encode: Callable[[Any], bytes]) -> Iterator[bytes]:
        """Encode a value; a vector or table that is too large becomes several, each whole in itself.

        >>> list(Sizes(message=8).pieces([1, 2, 3, 4, 5], lambda part: str(part).encode()))
        [b'[1, 2]', b'[3, 4]', b'[5]']
        """
        value = settle(value)
        data = encode(value)
        if len(data) <= self._message:
            yield data
            return
        count = rows(value) or 1
        if count == 1:
            if len(data) > self._buffer:
                raise FormatError(
                    f"a value of {len(data)} bytes cannot be split and is over the buffer size of "
                    f"{self._buffer}; send less at once, or set a larger buffer size "
                    "(and message.max.bytes, on the broker too)"
                )
            yield data
            return
        step = max(1, count // ceil(len(data) / self._message))
        for start in range(0, count, step):
            yield from self.pieces(cut(value, start, min(start + step, count)), encode)
