"""Where the items of arrays and maps start: found in rounds, one item of each lane at a time.

An item takes a byte at least, so a count beyond the bytes that are left is refused before anything is
allocated for it. Where few lanes have many items, the reader of single values finds the rest of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.decode.kernels.avro.avro_leaves import Column
from penstock.decode.kernels.avro.lanes import Lanes, Numbers
from penstock.decode.kernels.avro.varints import read_longs
from penstock.formats.avro.avro_primitives import Body, read_long, start_block
from penstock.formats.limits import decoded_limit

# The memory of an item, as the reader of single values counts it.
ITEM = 72
# From here on a round costs more than the items that it finds.
_ROUNDS, _FEW = 48, 24
Step = Callable[[Body, int], int]


@dataclass(frozen=True)
class Items:
    """The items of all lanes in order, and how many each lane has."""

    counts: Numbers
    lanes: Lanes


@dataclass(frozen=True)
class ItemReader:
    """How to go past one item: in all lanes, and, by `step`, in one."""

    column: Column
    step: Step


class ItemWalk:
    """Goes past arrays or maps, and notes where their items start."""

    def __init__(self, lanes: Lanes, reader: ItemReader) -> None:
        self._lanes = lanes
        self._reader = reader
        self._ends = lanes.end
        self._counts = np.zeros(len(lanes), np.int64)
        self._notes: list[tuple[Numbers, Numbers, Numbers]] = []
        self._rounds = 0

    def items(self) -> Items:
        """Move the lanes past their values, and return the items."""
        self._run(_spend)
        return self._items()

    def skip(self) -> None:
        """Move the lanes past their values, which are read later: then their memory is counted."""
        self._run(lambda _lanes, _count: None)

    def _run(self, spend: Callable[[Lanes, Numbers], None]) -> None:
        waiting = np.arange(len(self._lanes))
        while len(waiting):
            block = self._lanes.take(waiting)
            count = _read_counts(block)
            spend(block, count)
            self._lanes.put(waiting, block)
            more = (count > 0) & ~block.refused()
            waiting = self._pass_block(waiting[more], count[more])

    def _pass_block(self, chosen: Numbers, left: Numbers) -> Numbers:
        """Go past the items of one block in the chosen lanes; return the lanes that go on."""
        size = self._reader.column.size
        if size is None:
            return self._pass_in_rounds(chosen, left)
        self._rounds += 1
        if self._few(chosen):
            self._finish(chosen, left)
            return chosen[:0]
        return self._pass_sized(chosen, left, size)

    def _pass_in_rounds(self, chosen: Numbers, left: Numbers) -> Numbers:
        current, lanes = chosen, self._lanes.take(chosen)
        while len(current):
            self._rounds += 1
            if self._few(current):
                self._lanes.put(current, lanes)
                self._finish(current, left)
                return np.setdiff1d(chosen, current)
            self._note(current, self._counts[current], lanes.at)
            self._counts[current] += 1
            self._reader.column.skip(lanes)
            left = np.where(lanes.refused(), 0, left - 1)
            more = left > 0
            if not more.all():
                self._lanes.put(current, lanes)
                current, lanes, left = current[more], lanes.take(more), left[more]
        return chosen

    def _few(self, chosen: Numbers) -> bool:
        return self._rounds > _ROUNDS and len(chosen) <= _FEW

    def _pass_sized(self, chosen: Numbers, left: Numbers, size: int) -> Numbers:
        """Go past items that all have one size: their starts are known at once."""
        block = self._lanes.take(chosen)
        wrong = left > (block.end - block.at) // size
        block.refuse(wrong)
        left = np.where(wrong, 0, left)
        within = _ranges(left)
        self._note(
            np.repeat(chosen, left),
            np.repeat(self._counts[chosen], left) + within,
            np.repeat(block.at, left) + within * size,
        )
        self._counts[chosen] += left
        block.at = block.at + left * size
        self._lanes.put(chosen, block)
        return chosen

    def _finish(self, chosen: Numbers, left: Numbers) -> None:
        """Go to the end of the values of a few lanes, one by one."""
        for lane, count in zip(chosen.tolist(), left.tolist(), strict=True):
            one = self._lanes.take(np.array([lane]))
            starts = _finish_one(one, count, self._reader.step)
            self._lanes.put(np.array([lane]), one)
            self._note(
                np.full(len(starts), lane), self._counts[lane] + np.arange(len(starts)), starts
            )
            self._counts[lane] += len(starts)

    def _note(self, lane: Numbers, place: Numbers, start: Numbers) -> None:
        self._notes.append((lane, place, start))

    def _items(self) -> Items:
        counts, lanes = self._counts, self._lanes
        offsets = np.cumsum(counts) - counts
        starts = np.empty(int(counts.sum()), np.int64)
        for lane, place, start in self._notes:
            starts[offsets[lane] + place] = start
        # A refused lane ends nowhere now; its items end where its record does.
        ends, body = np.repeat(self._ends, counts), np.repeat(lanes.body, counts)
        return Items(counts, Lanes(lanes.batch, starts, ends, body))


def _read_counts(lanes: Lanes) -> Numbers:
    """Read the number of items of a block; after a negative one the block's size in bytes follows."""
    count = read_longs(lanes)
    sized = np.flatnonzero(count < 0)
    if len(sized):
        block = lanes.take(sized)
        read_longs(block)
        lanes.put(sized, block)
        count = np.abs(count)
    # The lowest number has no positive counterpart: it is negative still.
    lanes.refuse((count > lanes.end - lanes.at) | (count < 0))
    return np.where(lanes.refused(), 0, count)


def _spend(lanes: Lanes, count: Numbers) -> None:
    if lanes.batch.spent is not None:
        lanes.spend(ITEM * count)
        lanes.refuse(lanes.batch.spent[lanes.body] > decoded_limit())


def _ranges(lengths: Numbers) -> Numbers:
    """Return 0, 1, ... for each length.

    >>> _ranges(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _finish_one(lane: Lanes, left: int, step: Step) -> Numbers:
    """Move one lane to the end of its value, and return where the items start."""
    first, end = int(lane.at[0]), int(lane.end[0])
    body = Body.of(lane.batch.data[first:end].tobytes())
    starts: list[int] = []
    try:
        lane.at = lane.at + _steps(body, left, step, starts)
    except Exception:  # whatever it is: the reader of single values raises it again
        lane.refuse(np.ones(1, np.bool_))
    lane.spend(ITEM * max(0, len(starts) - left))
    return first + np.array(starts, np.int64)


def _steps(body: Body, left: int, step: Step, starts: list[int]) -> int:
    at = 0
    while left:
        for _ in range(left):
            starts.append(at)
            at = step(body, at)
        left, at = read_long(body, at)
        if left:
            left, at = start_block(left, body, at)
    return at
