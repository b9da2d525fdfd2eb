"""From the bytes of a message to its value: what stands behind each form's flag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.dolphindb import fixed, scalars, texts, types
from penstock.formats.dolphindb.containers import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.cursor import Cursor
from penstock.formats.dolphindb.one import read_one, read_scale
from penstock.formats.dolphindb.types import BY_CODE, FIXED_KINDS, Type, width

# A vector of VOID takes no bytes at all, so that nothing else bounds it.
_MOST_VOIDS = 2**20
_SMALLEST_OBJECT = 3
_SMALLEST_COLUMN = 11
_COMPRESSED, _WIDE = 8, 11
_COUNT_WIDTHS = {1: "u1", 2: "<u2", 4: "<u4"}


def read_object(data: bytes) -> Any:
    """Give the value of the bytes of one whole object, or raise `FormatError`."""
    cursor = Cursor(data)
    value = _object(cursor)
    cursor.end()
    return value


def _object(cursor: Cursor) -> Any:
    code, form = cursor.flag()
    if form == types.TABLE:
        return _table(cursor, code)
    if form == types.VECTOR:
        return _vector(cursor, code)
    if form == types.SCALAR:
        return read_one(cursor, _type(code))
    others = {
        types.PAIR: _pair,
        types.MATRIX: _matrix,
        types.SET: _set,
        types.DICTIONARY: _dictionary,
    }
    if form not in others:
        raise FormatError(f"no DolphinDB value: form {form} with type {code}; forms are 0 to 6")
    return others[form](cursor, code)


def _vector(cursor: Cursor, code: int) -> pa.Array | AnyVector:
    rows, columns = cursor.count("the rows of a vector"), cursor.count("the columns of a vector")
    if code == types.SYMBOL_WITH_BASE:
        _check_columns(columns)
        return texts.read_symbols(cursor, rows)
    if code >= types.ARRAY_OFFSET:
        return _array_vector(cursor, _type(code - types.ARRAY_OFFSET), rows, columns)
    _check_columns(columns)
    return _items(cursor, _type(code), rows)


def _items(cursor: Cursor, found: Type, count: int) -> pa.Array | AnyVector:
    if found.kind in FIXED_KINDS:
        scale = read_scale(cursor, found) if found.kind == "decimal" else 0
        cursor.need(count, width(found), f"a vector of {found.name}")
        return fixed.to_arrow(found, cursor.take(count * width(found)), scale)
    if found.kind == "any":
        cursor.need(count, _SMALLEST_OBJECT, "a vector of ANY")
        return AnyVector(_inner(cursor) for _ in range(count))
    if found.kind == "blob":
        return texts.read_blobs(cursor, count)
    if found.kind == "void":
        return _voids(count)
    found_texts = texts.read_texts(cursor, count)
    return texts.as_symbols(found_texts) if found.kind == "symbol" else found_texts


def _inner(cursor: Cursor) -> Any:
    """Read an object inside another one: its symbol bases are its own."""
    inner = cursor.within()
    value = _object(inner)
    cursor.place = inner.place
    return value


def _voids(count: int) -> pa.Array:
    if count > _MOST_VOIDS:
        raise FormatError(f"a vector of {count} VOID; {_MOST_VOIDS} are allowed")
    return pa.nulls(count)


def _array_vector(cursor: Cursor, found: Type, rows: int, cells: int) -> pa.Array:
    if found.kind not in FIXED_KINDS:
        raise FormatError(f"DolphinDB has no array vector of {found.name}")
    scale = read_scale(cursor, found) if found.kind == "decimal" else 0
    counts, items = [np.zeros(1, "<i8")], []
    left = rows
    while left:
        block = _counts(cursor, left)
        counts.append(block)
        left -= len(block)
        size = int(block.sum()) * width(found)
        items.append(cursor.take(size, f"the cells of {found.name}[]"))
    offsets = np.cumsum(np.concatenate(counts))
    if offsets[-1] != cells:
        raise FormatError(f"an array vector of {cells} cells has {offsets[-1]}")
    values = fixed.to_arrow(found, b"".join(items), scale)
    return pa.ListArray.from_arrays(pa.array(offsets.astype("<i4")), values)


def _counts(cursor: Cursor, most: int) -> Any:
    head = cursor.take(4, "a block of an array vector")
    rows, size = int.from_bytes(head[:2], "little"), head[2]
    if not 0 < rows <= most or size not in _COUNT_WIDTHS or head[3]:
        raise FormatError(f"no block of an array vector at byte {cursor.place - 4}")
    data = cursor.take(rows * size, "a block of an array vector")
    return np.frombuffer(data, _COUNT_WIDTHS[size]).astype("<i8")


def _pair(cursor: Cursor, code: int) -> Pair:
    rows, columns = cursor.count("the rows of a pair"), cursor.count("the columns of a pair")
    if rows != 2:
        raise FormatError(f"a pair has two values, not {rows}")
    _check_columns(columns)
    return Pair(_items(cursor, _plain_type(code, "pair"), rows))


def _matrix(cursor: Cursor, code: int) -> Matrix:
    labels = cursor.take(1, "the labels of a matrix")[0]
    if labels > 3:
        raise FormatError(f"a matrix with the label byte {labels}; allowed: 0 to 3")
    row_labels = _flat_vector(cursor) if labels & 1 else None
    column_labels = _flat_vector(cursor) if labels & 2 else None
    if cursor.flag() != (code, types.MATRIX):
        raise FormatError(f"the second flag of a matrix at byte {cursor.place - 2} is another one")
    rows, columns = cursor.count("the rows of a matrix"), cursor.count("the columns of a matrix")
    values = _items(cursor, _plain_type(code, "matrix"), rows * columns)
    return Matrix(values, rows, columns, row_labels, column_labels)


def _set(cursor: Cursor, _code: int) -> ValueSet:
    return ValueSet(_flat_vector(cursor))


def _dictionary(cursor: Cursor, _code: int) -> Dictionary:
    names = _flat_vector(cursor)
    return Dictionary(names, _vector_with_flag(cursor))


def _table(cursor: Cursor, kind: int) -> pa.Table:
    if kind in (_COMPRESSED, _WIDE):
        raise FormatError(f"a table of kind {kind} (compressed or wide) is no message for Kafka")
    rows, columns = cursor.count("the rows of a table"), cursor.count("the columns of a table")
    cursor.text()
    cursor.need(columns, _SMALLEST_COLUMN, "the columns of a table")
    if not columns:
        raise FormatError("a table without columns")
    names = [cursor.text() for _ in range(columns)]
    return pa.table([_column(cursor, name, rows) for name in names], names)


def _column(cursor: Cursor, name: str, rows: int) -> pa.Array:
    code, form = cursor.flag()
    if form != types.VECTOR:
        raise FormatError(f"the column {name!r} is no vector, but of form {form}")
    found = _any_column(cursor) if code == types.ANY_CODE else _vector(cursor, code)
    if len(found) != rows:
        raise FormatError(f"the column {name!r} has {len(found)} rows, the table {rows}")
    return found


def _any_column(cursor: Cursor) -> pa.Array:
    """Keep the items as the bytes that they are: Arrow has no type for a column of anything."""
    count, columns = cursor.count("the rows of a vector"), cursor.count("the columns of a vector")
    _check_columns(columns)
    cursor.need(count, _SMALLEST_OBJECT, "a vector of ANY")
    items = []
    for _ in range(count):
        start = cursor.place
        _inner(cursor)
        items.append(cursor.data[start : cursor.place])
    found = BY_CODE[types.ANY_CODE].arrow
    return pa.ExtensionArray.from_storage(found, pa.array(items, pa.binary()))


def _vector_with_flag(cursor: Cursor) -> pa.Array | AnyVector:
    code, form = cursor.flag()
    if form != types.VECTOR:
        raise FormatError(f"form {form} at byte {cursor.place - 1}, where a vector must be")
    return _vector(cursor, code)


def _flat_vector(cursor: Cursor) -> pa.Array:
    """Read keys, members or labels: values that can be told apart."""
    found = _vector_with_flag(cursor)
    if isinstance(found, AnyVector) or pa.types.is_list(found.type):
        raise FormatError("keys, members and labels are of one scalar type in DolphinDB")
    return found


def _type(code: int) -> Type:
    if code not in BY_CODE:
        raise FormatError(f"no DolphinDB value: type {code} is no type of a message's values")
    return BY_CODE[code]


def _plain_type(code: int, form: str) -> Type:
    found = _type(code)
    if found.kind not in FIXED_KINDS and found.kind != "text":
        raise FormatError(f"DolphinDB has no {form} of {found.name}")
    return found


def _check_columns(columns: int) -> None:
    if columns != 1:
        raise FormatError(f"a vector of {columns} columns; it has one")


scalars.FROM_STORAGE["ANY"] = read_object
