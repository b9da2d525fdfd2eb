"""The fields of many Protobuf messages, located at once.

All messages advance together. In each round those whose next tag is the smallest read that field, and the
others wait: writers write fields in the order of their numbers, so that a field is usually read in one
round for the whole batch, even where some messages lack it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.decode.kernels.protobuf.protobuf_wire import Bools, Window
from penstock.decode.kernels.varint_words import Ints, Words
from penstock.formats.protobuf.protobuf_size import ITEM

UNKNOWN = 0
VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_DONE = np.uint64(2**64 - 1)
_LARGEST_TAG, _LONGEST_TAG = 2**32, 5
# A round costs about as much as the parser needs for this many fields; a batch that is smaller, and the
# messages of a batch that are much longer than the others, are left to the parser.
FEW = 256


class OddBodiesError(Exception):
    """Some bodies are bad or unusual: only protobuf's own parser can decide what they are."""

    def __init__(self, records: Ints) -> None:
        super().__init__(f"{len(records)} bodies are not read in bulk")
        self.records = records


@dataclass(frozen=True)
class Cells:
    """Values of one field: the record of each, its number or its bytes, and whether it is set."""

    record: Ints
    start: Ints
    end: Ints
    numbers: Words | None = None
    exists: Bools | None = None

    def __len__(self) -> int:
        return len(self.record)

    def refuse(self, rows: Ints) -> None:
        """Raise `OddBodiesError` if there are any of these rows."""
        if len(rows):
            raise OddBodiesError(np.unique(self.record[rows]))


@dataclass(frozen=True)
class Reads:
    """One round's values of a field: the message of each, and its number or its bytes."""

    rows: Ints
    wire: int
    numbers: Words | None
    starts: Ints
    ends: Ints


def scan(window: Window, messages: Cells, known: frozenset[int]) -> dict[int, list[Reads]]:
    """Return the values of fields by number, those of all other fields as `UNKNOWN`.

    Raise `OddBodiesError` where messages are broken, or have groups.
    """
    return _Scan(window, messages, known).run()


class _Scan:
    def __init__(self, window: Window, messages: Cells, known: frozenset[int]) -> None:
        self._window = window
        self._messages = messages
        self._known = known
        self._reads: dict[int, list[Reads]] = {number: [] for number in (*known, UNKNOWN)}
        self._odd: list[Ints] = []
        self._tags = np.full(len(messages), _DONE)
        self._at = messages.start.copy()

    def run(self) -> dict[int, list[Reads]]:
        allowed = 2 * len(self._known) + 16
        self._read_tags(np.flatnonzero(self._messages.start < self._messages.end))
        while len(self._tags) and (tag := self._tags.min()) != _DONE:
            rows = np.flatnonzero(self._tags == tag)
            allowed -= 1
            if allowed < 0 and len(rows) < FEW:
                self._refuse(rows)
            else:
                self._read(int(tag), rows)
        if self._odd:
            self._messages.refuse(np.concatenate(self._odd))
        return self._reads

    def _read(self, tag: int, rows: Ints) -> None:
        self._window.budget.spend(len(rows) * ITEM)
        number, wire, at = tag >> 3, tag & 7, self._at[rows]
        numbers: Words | None = None
        starts = at
        if wire == VARINT:
            numbers, ends = self._window.varints(at)
        elif wire == SIZED:
            starts, ends = self._window.sized(at)
        elif wire in _WIDTHS:
            numbers, ends = self._window.fixed(at, _WIDTHS[wire]), at + _WIDTHS[wire]
        else:
            self._refuse(rows)
            return
        key = number if number in self._known else UNKNOWN
        self._reads[key].append(Reads(rows, wire, numbers, starts, ends))
        self._advance(rows, ends)

    def _advance(self, rows: Ints, ends: Ints) -> None:
        self._at[rows] = ends
        limits = self._messages.end[rows]
        self._tags[rows] = _DONE
        self._refuse(rows[ends > limits])
        self._read_tags(rows[ends < limits])

    def _read_tags(self, rows: Ints) -> None:
        at = self._at[rows]
        tags, after = self._window.varints(at)
        self._tags[rows] = tags
        self._at[rows] = after
        odd = (after > self._messages.end[rows]) | (after - at > _LONGEST_TAG)
        odd |= (tags >= _LARGEST_TAG) | (tags < 8)
        self._refuse(rows[odd])

    def _refuse(self, rows: Ints) -> None:
        if len(rows):
            self._odd.append(rows)
            self._tags[rows] = _DONE
