"""How much memory an Arrow IPC stream takes, read from its messages before Arrow allocates any of it.

Buffers may be compressed, columns of nulls have a length and no bytes, and the parts of a schema may be
shared many times over: each of them makes a large table of a short stream. Only the few fields of Arrow's
flatbuffers that say so are read here; Arrow itself checks all the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from penstock.errors import FormatError
from penstock.formats.limits import Budget

_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_TIMESTAMP, _UNION = 10, 14
# Below this size a schema cannot be shared into more than a few hundred megabytes: Arrow itself refuses
# more tables than eight for each byte.
_SMALL_SCHEMA = 4096
_FIELD = 1024
_PAIR = 128


class _Table(NamedTuple):
    """One table of a flatbuffer: its bytes, its place, and the place of its fields' offsets."""

    data: bytes
    place: int
    fields: int

    @classmethod
    def at(cls, data: bytes, place: int) -> _Table:
        return cls(data, place, place - _number("<i", data, place))

    def find(self, field: int) -> int:
        """Return the place of a field; 0 where it is not given."""
        slot = 4 + 2 * field
        if slot + 2 > _number("<H", self.data, self.fields):
            return 0
        offset = _number("<H", self.data, self.fields + slot)
        return self.place + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        place = self.find(field)
        return _number(form, self.data, place) if place else 0

    def table(self, field: int) -> _Table | None:
        place = self.find(field)
        return _Table.at(self.data, _target(self.data, place)) if place else None

    def vector(self, field: int) -> tuple[int, int]:
        """Return place and length of a vector or a text."""
        place = self.find(field)
        if not place:
            return 0, 0
        start = _target(self.data, place)
        return start + 4, _number("<I", self.data, start)

    def tables(self, field: int) -> Iterator[_Table]:
        start, count = self.vector(field)
        for place in range(start, start + 4 * count, 4):
            yield _Table.at(self.data, _target(self.data, place))


def check_stream(data: bytes) -> None:
    """Raise `FormatError` where the stream would take more memory than is allowed."""
    budget = Budget("an Arrow stream")
    place = 0
    try:
        while place < len(data):
            mark, size = struct.unpack_from("<Ii", data, place)
            if mark != _CONTINUATION or size < 0:
                raise FormatError(f"not an Arrow stream: no message at byte {place}")
            if not size:
                return
            body = place + 8 + size
            flatbuffer = data[place + 8 : body]
            message = _Table.at(flatbuffer, _number("<I", flatbuffer, 0))
            _spend(message, data, body, budget)
            place = body + max(message.number(3, "<q"), 0)
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(f"not an Arrow stream: {error}") from error


def _spend(message: _Table, data: bytes, body: int, budget: Budget) -> None:
    kind, header = message.number(1, "<B"), message.table(2)
    if header is None:
        return
    if len(message.data) > _SMALL_SCHEMA:
        _spend_pairs(message, 4, budget)
    if kind == _SCHEMA and len(message.data) > _SMALL_SCHEMA:
        _spend_schema(header, budget)
    batch = header.table(1) if kind == _DICTIONARY else header
    if kind in (_DICTIONARY, _BATCH) and batch is not None:
        _spend_batch(batch, data, body, budget)


def _spend_batch(batch: _Table, data: bytes, body: int, budget: Budget) -> None:
    lengths = _structs(batch, 1)[:, 0]
    buffers = _structs(batch, 2)
    if (lengths < 0).any() or (buffers < 0).any():
        raise FormatError("not an Arrow stream: a negative length")
    sizes = buffers[:, 1].tolist()
    if batch.find(3):
        sizes = [_inflated(data, body + at, size) for at, size in buffers.tolist()]
    total, items = sum(sizes), sum(lengths.tolist())
    # An item has a bit at least, but for nulls: their columns have a length only.
    budget.spend(total + 8 * max(items - 8 * total, 0))


def _inflated(data: bytes, place: int, size: int) -> int:
    if size < 8:
        return size
    length = _number("<q", data, place)
    if length < -1:
        raise FormatError(f"not an Arrow stream: a compressed buffer of {length} bytes")
    return size if length == -1 else length


def _spend_schema(schema: _Table, budget: Budget) -> None:
    _spend_pairs(schema, 2, budget)
    waiting = [schema.tables(1)]
    while waiting:
        field = next(waiting[-1], None)
        if field is None:
            waiting.pop()
            continue
        budget.spend(_FIELD + field.vector(0)[1] + _type_size(field), "the schema of ")
        _spend_pairs(field, 6, budget)
        waiting.append(field.tables(5))


def _type_size(field: _Table) -> int:
    type_table = field.table(3)
    if type_table is None:
        return 0
    kind = field.number(2, "<B")
    if kind == _UNION:
        return 64 * type_table.vector(1)[1]
    return type_table.vector(1)[1] if kind == _TIMESTAMP else 0


def _spend_pairs(table: _Table, field: int, budget: Budget) -> None:
    for pair in table.tables(field):
        size = _PAIR + pair.vector(0)[1] + pair.vector(1)[1]
        budget.spend(2 * size, "the metadata of ")


def _structs(table: _Table, field: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Read a vector of pairs of numbers."""
    start, count = table.vector(field)
    return np.frombuffer(table.data, "<i8", 2 * count, start).reshape(-1, 2)


def _number(form: str, data: bytes, place: int) -> int:
    if place < 0:
        raise FormatError("not an Arrow stream: a place before its beginning")
    number: int = struct.unpack_from(form, data, place)[0]
    return number


def _target(data: bytes, place: int) -> int:
    return place + _number("<I", data, place)
