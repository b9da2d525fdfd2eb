"""What a scan read for one field, as cells: one for each message, or the elements of its lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.decode.kernels.protobuf.protobuf_scan import (
    FIXED32,
    FIXED64,
    SIZED,
    VARINT,
    Cells,
    Reads,
)
from penstock.decode.kernels.protobuf.protobuf_types import Column
from penstock.decode.kernels.protobuf.protobuf_wire import Window, spread
from penstock.decode.kernels.varint_words import Ints, Words

_WIDTHS = {FIXED64: 8, FIXED32: 4}


def singular_cells(column: Column, wire: int, messages: Cells, reads: Sequence[Reads]) -> Cells:
    """Return one cell for each message; zeros, or empty bytes, where the field is not set."""
    refuse_reads(messages, [each for each in reads if each.wire != wire])
    count = len(messages)
    if len(reads) == 1 and len(reads[0].rows) == count:
        (read,) = reads
        return Cells(messages.record, read.starts, read.ends, read.numbers)
    exists = np.zeros(count, np.bool_)
    start, end, numbers = (np.zeros(count, np.int64) for _ in range(3))
    words = numbers.view(np.uint64)
    for read in reads:
        exists[read.rows] = True
        if read.numbers is None:
            start[read.rows], end[read.rows] = read.starts, read.ends
        else:
            words[read.rows] = read.numbers
    if column.field.is_required:
        missing = ~exists if messages.exists is None else messages.exists & ~exists
        messages.refuse(np.flatnonzero(missing))
    cells = Cells(messages.record, start, end, None if wire == SIZED else words)
    return replace(cells, exists=exists) if column.nullable else cells


def repeated_cells(
    wire: int, window: Window, messages: Cells, reads: Sequence[Reads]
) -> tuple[Ints, Cells]:
    """Return the message of each element, in order, and the elements."""
    parts = [_unpacked(wire, window, messages, read) for read in reads]
    if not parts:
        nothing = np.zeros(0, np.int64)
        numbers = None if wire == SIZED else nothing.view(np.uint64)
        return nothing, Cells(nothing, nothing, nothing, numbers)
    rows = np.concatenate([part.rows for part in parts])
    starts = np.concatenate([part.starts for part in parts])
    ends = np.concatenate([part.ends for part in parts])
    numbers = _concatenated(parts)
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        rows, starts, ends = rows[order], starts[order], ends[order]
        numbers = None if numbers is None else numbers[order]
    return rows, Cells(messages.record[rows], starts, ends, numbers)


def _concatenated(parts: Sequence[Reads]) -> Words | None:
    numbers = [part.numbers for part in parts if part.numbers is not None]
    return np.concatenate(numbers) if numbers else None


def refuse_reads(messages: Cells, reads: Sequence[Reads]) -> None:
    """Refuse the messages that have some values."""
    for read in reads:
        messages.refuse(read.rows)


def _unpacked(wire: int, window: Window, messages: Cells, read: Reads) -> Reads:
    if read.wire == wire:
        return read
    if read.wire != SIZED:
        messages.refuse(read.rows)
    if wire == VARINT:
        return _packed_varints(window, messages, read)
    return _packed_fixed(window, messages, read, wire)


def _packed_fixed(window: Window, messages: Cells, read: Reads, wire: int) -> Reads:
    width = _WIDTHS[wire]
    counts, rest = np.divmod(read.ends - read.starts, width)
    messages.refuse(read.rows[rest > 0])
    at = spread(read.starts, counts, width)
    return Reads(np.repeat(read.rows, counts), wire, window.fixed(at, width), at, at)


def _packed_varints(window: Window, messages: Cells, read: Reads) -> Reads:
    sizes = read.ends - read.starts
    used = sizes > 0
    rows, starts, ends, sizes = (each[used] for each in (read.rows, read.starts, read.ends, sizes))
    messages.refuse(rows[window.bytes[ends - 1] >= 0x80])
    # A number starts where the one before it has its last byte, and at the start of the field.
    places = spread(starts, sizes)
    last = window.bytes[places] < 0x80
    first = np.empty(len(places), np.bool_)
    first[1:] = last[:-1]
    first[np.cumsum(sizes) - sizes] = True
    at = places[first]
    rows = np.repeat(rows, sizes)[first]
    numbers, after = window.varints(at)
    messages.refuse(rows[after > len(window.bytes)])
    return Reads(rows, VARINT, numbers, at, at)
