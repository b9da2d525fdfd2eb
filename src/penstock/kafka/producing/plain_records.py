"""Records as Python has them, on their way into Kafka: columns in between would take time for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any


@dataclass(frozen=True)
class PlainRecords:
    """Values, each with its key where there are keys.

    >>> records = PlainRecords([b"1", None], [b"a", b"b"])
    >>> records.num_rows, [*records.messages("t")]
    (2, [('t', b'1', b'a'), ('t', None, b'b')])
    """

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None

    @property
    def num_rows(self) -> int:
        """Return how many they are."""
        return len(self.values)

    def messages(self, topic: str) -> Iterable[tuple[Any, ...]]:
        """Return the arguments of `produce` for each."""
        return zip(repeat(topic), self.values, self.keys or repeat(None))

    def longest(self) -> int:
        """Return how many bytes the largest has at most: the longest value with the longest key.

        >>> PlainRecords([b"123", None], [None, b"ab"]).longest()
        5
        """
        return _longest(self.values) + _longest(self.keys or ())

    def sizes(self) -> list[int]:
        """Return the bytes of each, key and value.

        >>> PlainRecords([b"123", None], [None, b"ab"]).sizes()
        [3, 2]
        """
        sizes = [len(value or b"") for value in self.values]
        if self.keys is None:
            return sizes
        return [size + len(key or b"") for size, key in zip(sizes, self.keys, strict=True)]

    def filter(self, kept: Sequence[bool]) -> PlainRecords:
        """Return those of which it is true."""
        keys = None if self.keys is None else [*compress(self.keys, kept)]
        return PlainRecords([*compress(self.values, kept)], keys)


def _longest(parts: Sequence[bytes | None]) -> int:
    try:
        return max(map(len, parts), default=0)  # type: ignore[arg-type]
    except TypeError:  # there is a None
        return max(map(len, filter(None, parts)), default=0)
