"""Arrow arrays of Protobuf messages in bulk, straight from the bytes of a batch.

Any message that is not plain (a field that is given twice, a group, text that is not UTF-8, a time out of
range, broken bytes) raises `OddBodiesError` with its record: protobuf's parser decides about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from penstock.decode.kernels.arrow_kernel import arrow_type
from penstock.decode.kernels.outcome import MisfitError
from penstock.decode.kernels.protobuf.protobuf_known import (
    FIRST_SECOND,
    LAST_SECOND,
    MOST_SECONDS,
    NANOS,
    json_of,
)
from penstock.decode.kernels.protobuf.protobuf_numbers import (
    NUMBERS,
    enum_array,
    number_array,
    seconds_array,
    with_nulls,
)
from penstock.decode.kernels.protobuf.protobuf_occurrences import (
    refuse_reads,
    repeated_cells,
    singular_cells,
)
from penstock.decode.kernels.protobuf.protobuf_scan import SIZED, UNKNOWN, Cells, Reads, scan
from penstock.decode.kernels.protobuf.protobuf_types import Column, Value
from penstock.decode.kernels.protobuf.protobuf_wire import Window
from penstock.decode.kernels.varint_words import Ints, Words
from penstock.formats.protobuf.protobuf_size import message_room, size_factor

# A message inside another takes two bytes or more: this many cannot nest too deep for the parser.
_SHORT = 128
Build = Callable[[Window, Cells], pa.Array]


class MessageArrays:
    """Makes the arrays of all columns of a message type."""

    def __init__(self, message: Descriptor, columns: Sequence[Column]) -> None:
        self._columns = [(column, _column(column)) for column in columns]
        self._known = frozenset(column.field.number for column in columns)
        self._room = message_room(message)
        self._is_entry = message.GetOptions().map_entry
        oneofs = ([field.number for field in each.fields] for each in message.oneofs)
        self._oneofs = [numbers for numbers in oneofs if len(numbers) > 1]

    def __call__(self, window: Window, messages: Cells) -> list[pa.Array]:
        """Return one array for each column, with one row for each message."""
        window.budget.spend(len(messages) * self._room)
        reads = scan(window, messages, self._known)
        if self._is_entry:
            # The parser leaves out entries of maps that have anything but a key and a value.
            refuse_reads(messages, reads[UNKNOWN])
        for numbers in self._oneofs:
            _refuse_repetition(messages, list(chain.from_iterable(reads[n] for n in numbers)))
        return [
            build(window, messages, reads[column.field.number]) for column, build in self._columns
        ]


def _refuse_repetition(messages: Cells, reads: Sequence[Reads]) -> None:
    """Refuse messages that have more than one of some values, of which the last counts."""
    if len(reads) > 1:
        counts = np.bincount(np.concatenate([each.rows for each in reads]))
        messages.refuse(np.flatnonzero(counts > 1))


def _column(column: Column) -> Callable[[Window, Cells, list[Reads]], pa.Array]:
    if column.value.kind in ("map", "pairs"):
        return _map(column)
    build, wire = _builder(column.value), _wire(column.value)
    type_ = arrow_type(column.declared.type)

    def singular(window: Window, messages: Cells, reads: list[Reads]) -> pa.Array:
        _refuse_repetition(messages, reads)
        return build(window, singular_cells(column, wire, messages, reads))

    def listed(window: Window, messages: Cells, reads: list[Reads]) -> pa.Array:
        rows, cells = repeated_cells(wire, window, messages, reads)
        offsets = _offsets(rows, len(messages))
        return pa.ListArray.from_arrays(offsets, build(window, cells), type=type_)

    return listed if column.repeated else singular


def _map(column: Column) -> Callable[[Window, Cells, list[Reads]], pa.Array]:
    arrays = MessageArrays(column.value.descriptor, column.value.inner)
    type_ = arrow_type(column.value.type)

    def build(window: Window, messages: Cells, reads: list[Reads]) -> pa.Array:
        rows, cells = repeated_cells(SIZED, window, messages, reads)
        keys, items = arrays(window, cells)
        order = _sorted_order(messages, rows, keys)
        offsets, pair = _offsets(rows, len(messages)), [keys.take(order), items.take(order)]
        if column.value.kind == "map":
            return pa.MapArray.from_arrays(offsets, *pair, type=type_)
        entries = pa.StructArray.from_arrays(pair, fields=list(type_.value_type))
        return pa.ListArray.from_arrays(offsets, entries, type=type_)

    return build


def _sorted_order(messages: Cells, rows: Ints, keys: pa.Array) -> pa.Array:
    """Return the order of a map's entries by message and key; refuse keys that are given twice."""
    if pa.types.is_boolean(keys.type):
        keys = keys.cast(pa.int8())
    by = [("row", "ascending"), ("key", "ascending")]
    order = pc.sort_indices(pa.table({"row": rows, "key": keys}), sort_keys=by)
    rows, keys = rows[order.to_numpy()], keys.take(order)
    same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False).astype(np.bool_)
    messages.refuse(rows[1:][same & (rows[1:] == rows[:-1])])
    return order


def _wire(value: Value) -> int:
    return NUMBERS[value.kind][0] if value.kind in NUMBERS else SIZED


def _offsets(rows: Ints, count: int) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    return pa.array(offsets)


def _builder(value: Value) -> Build:
    if value.kind == "enum":
        names = value.names
        return lambda _window, cells: with_nulls(enum_array(names, _words(cells)), cells.exists)
    if value.kind in NUMBERS:
        return lambda _window, cells: with_nulls(
            number_array(value.kind, _words(cells)), cells.exists
        )
    return _SIZED[value.kind](value)


def _words(cells: Cells) -> Words:
    return np.zeros(len(cells), np.uint64) if cells.numbers is None else cells.numbers


def _bytes(_value: Value) -> Build:
    return lambda window, cells: with_nulls(window.binary(cells.start, cells.end), cells.exists)


def _string(_value: Value) -> Build:
    def build(window: Window, cells: Cells) -> pa.Array:
        return with_nulls(_texts(window.binary(cells.start, cells.end), cells), cells.exists)

    return build


def _texts(values: pa.Array, cells: Cells) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        bad = [row for row, value in enumerate(values.to_pylist()) if not _is_text(value)]
        cells.refuse(np.array(bad, np.int64))
        raise


def _is_text(value: bytes) -> bool:
    try:
        return value.decode() is not None
    except UnicodeDecodeError:
        return False


def _struct(value: Value) -> Build:
    arrays = MessageArrays(value.descriptor, value.inner)
    fields = list(arrow_type(value.type))

    def build(window: Window, cells: Cells) -> pa.Array:
        columns = arrays(window, cells)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=_mask(cells))

    return build


def _mask(cells: Cells) -> pa.Array | None:
    return None if cells.exists is None else pa.array(~cells.exists)


def _empty(value: Value) -> Build:
    arrays = MessageArrays(value.descriptor, ())

    def build(window: Window, cells: Cells) -> pa.Array:
        arrays(window, cells)
        return pa.array(np.ones(len(cells), np.bool_) if cells.exists is None else cells.exists)

    return build


def _wrapper(value: Value) -> Build:
    arrays = MessageArrays(value.descriptor, value.inner)
    return lambda window, cells: with_nulls(arrays(window, cells)[0], cells.exists)


def _field_mask(value: Value) -> Build:
    arrays, type_ = MessageArrays(value.descriptor, value.inner), arrow_type(value.type)

    def build(window: Window, cells: Cells) -> pa.Array:
        (lists,) = arrays(window, cells)
        offsets, values = lists.offsets, lists.values
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=_mask(cells))

    return build


def _timestamp(value: Value) -> Build:
    arrays, type_ = MessageArrays(value.descriptor, value.inner), arrow_type(value.type)

    def build(window: Window, cells: Cells) -> pa.Array:
        seconds, nanos = (array.to_numpy() for array in arrays(window, cells))
        odd = (seconds < FIRST_SECOND) | (seconds > LAST_SECOND) | (nanos < 0) | (nanos >= NANOS)
        cells.refuse(np.flatnonzero(odd))
        micros = seconds * 1_000_000 + nanos // 1000
        return with_nulls(pa.array(micros).cast(type_), cells.exists)

    return build


def _duration(value: Value) -> Build:
    arrays = MessageArrays(value.descriptor, value.inner)

    def build(window: Window, cells: Cells) -> pa.Array:
        columns = arrays(window, cells)
        seconds, nanos = (array.to_numpy() for array in columns)
        odd = (seconds < -MOST_SECONDS) | (seconds > MOST_SECONDS)
        odd |= (nanos <= -NANOS) | (nanos >= NANOS)
        odd |= (np.sign(seconds) * np.sign(nanos)) < 0
        cells.refuse(np.flatnonzero(odd))
        return with_nulls(seconds_array(*columns), cells.exists)

    return build


def _json(value: Value) -> Build:
    parse, factor = GetMessageClass(value.descriptor).FromString, size_factor(value.descriptor)

    def build(window: Window, cells: Cells) -> pa.Array:
        # The parser limits how deep messages nest, and counts from the beginning of the body.
        cells.refuse(np.flatnonzero(cells.end - cells.start > _SHORT))
        window.budget.spend(int((cells.end - cells.start).sum()) * factor)
        bodies = with_nulls(window.binary(cells.start, cells.end), cells.exists).to_pylist()
        texts, odd = [], []
        for row, body in enumerate(bodies):
            try:
                texts.append(None if body is None else json_of(parse(body), ""))
            except (DecodeError, MisfitError):
                odd.append(row)
        cells.refuse(np.array(odd, np.int64))
        return pa.array(texts, pa.string())

    return build


_SIZED: dict[str, Callable[[Value], Build]] = {
    "string": _string,
    "bytes": _bytes,
    "struct": _struct,
    "empty": _empty,
    "wrapper": _wrapper,
    "mask": _field_mask,
    "timestamp": _timestamp,
    "duration": _duration,
    "json": _json,
}
