"""Readers of Avro's records, unions, arrays and maps, made of the readers of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.avro.avro_items import ItemReader, ItemWalk
from penstock.decode.kernels.avro.avro_leaves import Column, NullColumn, SpanColumn
from penstock.decode.kernels.avro.byte_spans import text
from penstock.decode.kernels.avro.lanes import Lanes, Numbers
from penstock.decode.kernels.avro.varints import read_longs
from penstock.formats.avro.avro_primitives import Body, Reader, read_string

# The memory of a record and of each of its fields, as the reader of single values counts it.
_RECORD, _FIELD = 232, 104


class DefaultColumn(Column):
    """A field that was not written: its default in each lane."""

    size = 0

    def __init__(self, value: pa.Array) -> None:
        self.type = value.type
        self._value = value

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the default as often as there are lanes."""
        return self._value.take(pa.array(np.zeros(len(lanes), np.int32)))

    def skip(self, lanes: Lanes) -> None:
        """Move nothing: the default is not in the bytes."""


class RecordColumn(Column):
    """A record: its fields in the order in which they were written, and those with their defaults.

    A field without a place (None) is read, because its bytes must be right, and left out.
    """

    def __init__(self, fields: Sequence[tuple[int | None, Column]], type_: pa.StructType) -> None:
        self.type = type_
        self._fields = fields
        self.cost = _RECORD + _FIELD * len(fields)
        sizes = [column.size for _, column in fields]
        self.size = None if None in sizes else sum(size or 0 for size in sizes)

    def columns(self, lanes: Lanes) -> list[pa.Array]:
        """Return the columns of the fields."""
        lanes.spend(self.cost)
        arrays: list[Any] = [None] * self.type.num_fields
        for place, column in self._fields:
            array = column.read(lanes)
            if place is not None:
                arrays[place] = array
        return arrays

    def read(self, lanes: Lanes) -> pa.Array:
        """Return a struct for each lane."""
        return pa.StructArray.from_arrays(self.columns(lanes), fields=list(self.type))

    def skip(self, lanes: Lanes) -> None:
        """Move past the fields."""
        if self.size is not None:
            lanes.move(self.size)
            return
        for _, column in self._fields:
            column.skip(lanes)


class BranchColumn(Column):
    """A value of one type of a union of several: a struct in which one field is set."""

    def __init__(self, inner: Column, place: int, type_: pa.StructType) -> None:
        self.type = type_
        self.size = inner.size
        self._inner = inner
        self._place = place

    def read(self, lanes: Lanes) -> pa.Array:
        """Return structs."""
        arrays = [pa.nulls(len(lanes), field.type) for field in self.type]
        arrays[self._place] = self._inner.read(lanes)
        return pa.StructArray.from_arrays(arrays, fields=list(self.type))

    def skip(self, lanes: Lanes) -> None:
        """Move past the value."""
        self._inner.skip(lanes)


class UnionColumn(Column):
    """A union as it was written: the number of a branch, and a value of it. All give one type."""

    def __init__(self, branches: Sequence[Column], type_: pa.DataType) -> None:
        self.type = type_
        self._branches = branches

    def read(self, lanes: Lanes) -> pa.Array:
        """Return the values of all branches, in the order of the lanes."""
        parts: list[pa.Array] = []
        index, done = np.full(len(lanes), -1, np.int64), 0
        for column, chosen in self._chosen(lanes):
            if len(chosen) == len(lanes):
                return column.read(lanes)
            if type(column) is NullColumn:
                continue
            part = lanes.take(chosen)
            parts.append(column.read(part))
            lanes.put(chosen, part)
            index[chosen] = np.arange(done, done + len(chosen))
            done += len(chosen)
        if not parts:
            return pa.nulls(len(lanes), self.type)
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return values.take(pa.array(index, mask=index < 0))

    def skip(self, lanes: Lanes) -> None:
        """Move past the values, each by its branch."""
        for column, chosen in self._chosen(lanes):
            if type(column) is not NullColumn:
                part = lanes.take(chosen)
                column.skip(part)
                lanes.put(chosen, part)

    def _chosen(self, lanes: Lanes) -> list[tuple[Column, Numbers]]:
        branch = read_longs(lanes)
        wrong = (branch < 0) | (branch >= len(self._branches))
        lanes.refuse(wrong)
        branch = np.where(wrong, 0, branch)
        chosen = [np.flatnonzero(branch == place) for place in range(len(self._branches))]
        return [pair for pair in zip(self._branches, chosen, strict=True) if len(pair[1])]


@dataclass
class ArrayColumn(Column):
    """Arrays: where the items start is found first, then all items of all lanes are read at once."""

    type: pa.ListType
    item: Column
    read_one: Reader

    def read(self, lanes: Lanes) -> pa.Array:
        """Return lists."""
        items = ItemWalk(lanes, self._reader()).items()
        return pa.ListArray.from_arrays(
            _offsets(items.counts), self.item.read(items.lanes), type=self.type
        )

    def skip(self, lanes: Lanes) -> None:
        """Move past the items and the end of the array."""
        ItemWalk(lanes, self._reader()).skip()

    def _reader(self) -> ItemReader:
        return ItemReader(self.item, _step(self.read_one))


@dataclass
class MapColumn(Column):
    """Maps, as pairs of a text and a value. Of a key that is repeated the last value counts."""

    type: pa.MapType
    value: Column
    read_one: Reader

    def read(self, lanes: Lanes) -> pa.Array:
        """Return maps."""
        items = ItemWalk(lanes, self._reader()).items()
        keys, values = _KEYS.read(items.lanes), self.value.read(items.lanes)
        counts, first, last = _distinct(items.counts, keys)
        if first is not None:
            keys, values = keys.take(first), values.take(last)
        return pa.MapArray.from_arrays(_offsets(counts), keys, values, type=self.type)

    def skip(self, lanes: Lanes) -> None:
        """Move past the pairs and the end of the map."""
        ItemWalk(lanes, self._reader()).skip()

    def _reader(self) -> ItemReader:
        step = _step(self.read_one)
        return ItemReader(_Entry(self.value), lambda body, at: step(body, read_string(body, at)[1]))


_KEYS = SpanColumn(pa.string(), text)


class _Entry(Column):
    """A pair of a map, to go past it."""

    type = pa.null()

    def __init__(self, value: Column) -> None:
        self._value = value

    def read(self, lanes: Lanes) -> pa.Array:
        """Move past key and value; return nulls."""
        self.skip(lanes)
        return pa.nulls(len(lanes))

    def skip(self, lanes: Lanes) -> None:
        """Move past key and value."""
        _KEYS.skip(lanes)
        self._value.skip(lanes)


def _step(read_one: Reader) -> Callable[[Body, int], int]:
    return lambda body, at: read_one(body, at)[1]


def _offsets(counts: Numbers) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))


def _distinct(counts: Numbers, keys: pa.Array) -> tuple[Numbers, pa.Array | None, pa.Array | None]:
    """Return, where a map repeats a key, the new counts, and where each key is first and last."""
    if not (counts > 1).any():
        return counts, None, None
    codes = keys.dictionary_encode()
    lane = np.repeat(np.arange(len(counts)), counts)
    pairs = lane * len(codes.dictionary) + codes.indices.to_numpy()
    unique, first = np.unique(pairs, return_index=True)
    if len(unique) == len(pairs):
        return counts, None, None
    last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
    order = np.argsort(first)
    kept = np.bincount(lane[first], minlength=len(counts))
    return kept, pa.array(first[order]), pa.array(last[order])


class SingleColumn(Column):
    """A value that only the reader of single values can read, and that no column needs."""

    type = pa.null()

    def __init__(self, read_one: Reader) -> None:
        self._read_one = read_one

    def read(self, lanes: Lanes) -> pa.Array:
        """Check the value of each lane, and count its memory; return nulls."""
        lanes.spend(self._pass(lanes))
        return pa.nulls(len(lanes))

    def skip(self, lanes: Lanes) -> None:
        """Move past the value, lane by lane."""
        self._pass(lanes)

    def _pass(self, lanes: Lanes) -> Numbers:
        """Move past the value, and return the memory that it takes."""
        pairs = [self._next(lanes, lane) for lane in range(len(lanes))]
        moved: Numbers = np.array(pairs, np.int64).reshape(-1, 2)
        at: Numbers = moved[:, 0]
        spent: Numbers = moved[:, 1]
        lanes.at = np.where(at < 0, lanes.at, at)
        lanes.refuse(at < 0)
        return spent

    def _next(self, lanes: Lanes, lane: int) -> tuple[int, int]:
        first, end = int(lanes.at[lane]), int(lanes.end[lane])
        body = Body.of(lanes.batch.data[first:end].tobytes())
        try:
            return first + self._read_one(body, 0)[1], body.budget.spent
        except Exception:  # whatever it is: the reader of the whole record raises it again
            return -1, 0
