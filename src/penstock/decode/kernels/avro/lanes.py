"""Positions in the bytes of many records at once: one lane for each value that is read next.

A reader moves all lanes of a batch in one numpy operation. A lane whose bytes are wrong marks its record
as bad, and goes on in zeros after the last record: so no reader has to treat it differently.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
_PAD = 32


class Batch:
    """The bytes of some records, which of them are bad, and the memory that each takes as an object.

    `spent` is None where no record is long enough to reach the limit of memory.
    """

    def __init__(self, bodies: pa.Array) -> None:
        count = len(bodies)
        ends = np.frombuffer(bodies.buffers()[1], np.int32)[bodies.offset :][: count + 1]
        ends = ends.astype(np.int64)
        size = int(ends[-1] - ends[0])
        self.data = np.zeros(size + _PAD, np.uint8)
        if size:
            self.data[:size] = np.frombuffer(bodies.buffers()[2], np.uint8)[ends[0] : ends[-1]]
        self.buffer = pa.py_buffer(self.data)
        # The eight bytes at every position, as one number; the views overlap.
        self.words = np.ndarray((size + _PAD - 8,), "<u8", self.data.data, 0, (1,))
        self.nowhere = size + 1
        self.bad: Mask = np.zeros(count, np.bool_)
        self.spent: Numbers | None = None
        self.ends = ends - ends[0]

    def lanes(self) -> Lanes:
        """Return one lane at the start of each record."""
        return Lanes(self, self.ends[:-1], self.ends[1:], np.arange(len(self.bad)))


class Lanes:
    """Where the next value of each lane starts, where its record ends, and which record it is.

    The arrays are replaced, never changed: a reader may hold the positions from before.
    """

    __slots__ = ("at", "batch", "body", "end")

    def __init__(self, batch: Batch, at: Numbers, end: Numbers, body: Numbers) -> None:
        self.batch = batch
        self.at = at
        self.end = end
        self.body = body

    def __len__(self) -> int:
        return len(self.at)

    def take(self, chosen: Numbers | Mask) -> Lanes:
        """Return some of the lanes."""
        return Lanes(self.batch, self.at[chosen], self.end[chosen], self.body[chosen])

    def put(self, chosen: Numbers, moved: Lanes) -> None:
        """Continue where the chosen lanes, which were taken before, have come to."""
        self.at, self.end = self.at.copy(), self.end.copy()
        self.at[chosen], self.end[chosen] = moved.at, moved.end

    def move(self, step: int | Numbers) -> None:
        """Go on by some bytes; a lane whose record ends before is refused."""
        self.at = self.at + step
        self.refuse(self.at > self.end)

    def refuse(self, wrong: Mask) -> None:
        """Mark the records of some lanes as bad, and let those lanes read zeros from here on."""
        if wrong.any():
            self.batch.bad[self.body[wrong]] = True
            self.at = np.where(wrong, self.batch.nowhere, self.at)
            self.end = np.where(wrong, self.batch.nowhere, self.end)

    def refused(self) -> Mask:
        """Return which lanes were refused."""
        refused: Mask = self.at == self.batch.nowhere
        return refused

    def spend(self, size: int | Numbers) -> None:
        """Count the memory that one object in each lane takes, as the reader of single values does."""
        if self.batch.spent is not None:
            np.add.at(self.batch.spent, self.body, size)
