"""From the bytes of a message to its value: the bytes after each form's flag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_size import python_size
from penstock.formats.dolphindb import dolphindb_texts, dolphindb_types, fixed, scalars
from penstock.formats.dolphindb.containers import (
    AnyVector,
    Dictionary,
    Matrix,
    Pair,
    ValueSet,
    shared,
)
from penstock.formats.dolphindb.cursor import Cursor
from penstock.formats.dolphindb.dolphindb_types import BY_CODE, FIXED_KINDS, Type, width
from penstock.formats.dolphindb.packing import read_one, read_scale

# A vector of VOID takes no bytes at all, so that nothing else bounds it.
_MOST_VOIDS = 2**20
# The maximum memory of an object without its items: an Arrow array is several objects.
_SCALAR_SIZE, _VECTOR_SIZE, _COLUMN_SIZE = 128, 1024, 2048
_ITEM_SIZE = 16
_SMALLEST_OBJECT = 3
_SMALLEST_COLUMN = 11
_COMPRESSED, _WIDE = 8, 11
_COUNT_WIDTHS = {1: "u1", 2: "<u2", 4: "<u4"}


def read_object(data: bytes) -> Any:
    """Return the value of the bytes of one whole object, or raise `FormatError`."""
    cursor = Cursor(data)
    value = _object(cursor)
    cursor.end()
    return value


def _object(cursor: Cursor) -> Any:
    code, form = cursor.flag()
    if form == dolphindb_types.TABLE:
        return _table(cursor, code)
    if form == dolphindb_types.VECTOR:
        return _vector(cursor, code)
    if form == dolphindb_types.SCALAR:
        cursor.budget.spend(_SCALAR_SIZE)
        return read_one(cursor, _type(code))
    others = {
        dolphindb_types.PAIR: _pair,
        dolphindb_types.MATRIX: _matrix,
        dolphindb_types.SET: _set,
        dolphindb_types.DICTIONARY: _dictionary,
    }
    if form not in others:
        raise FormatError(f"not a DolphinDB value: form {form} with type {code}; forms are 0 to 6")
    return others[form](cursor, code)


def _vector(cursor: Cursor, code: int) -> pa.Array | AnyVector:
    rows, columns = cursor.count("the rows of a vector"), cursor.count("the columns of a vector")
    cursor.budget.spend(_VECTOR_SIZE)
    if code == dolphindb_types.SYMBOL_WITH_BASE:
        _check_columns(columns)
        return dolphindb_texts.read_symbols(cursor, rows)
    if code >= dolphindb_types.ARRAY_OFFSET:
        return _array_vector(cursor, _type(code - dolphindb_types.ARRAY_OFFSET), rows, columns)
    _check_columns(columns)
    return _items(cursor, _type(code), rows)


def _items(cursor: Cursor, type_: Type, count: int) -> pa.Array | AnyVector:
    if type_.kind in FIXED_KINDS:
        scale = read_scale(cursor, type_) if type_.kind == "decimal" else 0
        cursor.need(count, width(type_), f"a vector of {type_.name}")
        cursor.budget.spend(count * (width(type_) + _ITEM_SIZE))
        return fixed.to_arrow(type_, cursor.take(count * width(type_)), scale)
    if type_.kind == "any":
        cursor.need(count, _SMALLEST_OBJECT, "a vector of ANY")
        cursor.budget.spend(count * _ITEM_SIZE)
        return AnyVector(_inner(cursor) for _ in range(count))
    if type_.kind == "blob":
        return dolphindb_texts.read_blobs(cursor, count)
    if type_.kind == "void":
        if count > _MOST_VOIDS:
            raise FormatError(f"a vector of {count} VOID; {_MOST_VOIDS} are allowed")
        cursor.budget.spend(count * _ITEM_SIZE)
        return pa.nulls(count)
    found_texts = dolphindb_texts.read_texts(cursor, count)
    return dolphindb_texts.as_symbols(found_texts) if type_.kind == "symbol" else found_texts


def _inner(cursor: Cursor) -> Any:
    """Read an object inside another one: its symbol bases are its own."""
    inner = cursor.within()
    value = _object(inner)
    null = _typed_null(cursor) if value is None else None
    cursor.place = inner.place
    return value if null is None else null


def _typed_null(cursor: Cursor) -> scalars.Null | None:
    """Return the null whose bytes come next with its type, so that it is written again as what it was."""
    type_ = BY_CODE[cursor.data[cursor.place]]
    if type_.kind == "void":
        return None
    scale = cursor.data[cursor.place + 2 : cursor.place + 6] if type_.kind == "decimal" else b""
    return scalars.Null(type_.name, int.from_bytes(scale, "little"))


def _array_vector(cursor: Cursor, type_: Type, rows: int, cells: int) -> pa.Array:
    if type_.kind not in FIXED_KINDS:
        raise FormatError(f"DolphinDB has no array vector of {type_.name}")
    scale = read_scale(cursor, type_) if type_.kind == "decimal" else 0
    counts, items = [np.zeros(1, "<i8")], []
    left = rows
    cursor.budget.spend(min(rows, cursor.left) * _ITEM_SIZE)
    while left:
        block = _counts(cursor, left)
        counts.append(block)
        left -= len(block)
        size = int(block.sum()) * width(type_)
        cursor.budget.spend(min(size, cursor.left) * 2)
        items.append(cursor.take(size, f"the cells of {type_.name}[]"))
    offsets = np.cumsum(np.concatenate(counts))
    if offsets[-1] != cells:
        raise FormatError(f"an array vector of {cells} cells has {offsets[-1]}")
    values = fixed.to_arrow(type_, b"".join(items), scale)
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
    if cursor.flag() != (code, dolphindb_types.MATRIX):
        raise FormatError(f"the second flag of a matrix at byte {cursor.place - 2} is another one")
    rows, columns = cursor.count("the rows of a matrix"), cursor.count("the columns of a matrix")
    cursor.budget.spend(rows * _ITEM_SIZE + columns * _SCALAR_SIZE)
    values = _items(cursor, _plain_type(code, "matrix"), rows * columns)
    return Matrix(values, rows, columns, row_labels, column_labels)


def _set(cursor: Cursor, _code: int) -> ValueSet:
    members = _flat_vector(cursor)
    _spend_objects(cursor, members)
    return ValueSet(members)


def _dictionary(cursor: Cursor, _code: int) -> Dictionary:
    names = _flat_vector(cursor)
    contents = _vector_with_flag(cursor)
    _spend_objects(cursor, names)
    _spend_objects(cursor, contents)
    return Dictionary(names, contents)


def _spend_objects(cursor: Cursor, items: pa.Array | AnyVector) -> None:
    """Count the Python objects that a set or a dictionary makes of its items."""
    known = len(items) if isinstance(items, AnyVector) else python_size(shared(items))
    cursor.budget.spend(_SCALAR_SIZE * len(items) + known)


def _table(cursor: Cursor, kind: int) -> pa.Table:
    if kind in (_COMPRESSED, _WIDE):
        raise FormatError(
            f"a table of kind {kind} (compressed or wide) is not supported in messages"
        )
    rows, columns = cursor.count("the rows of a table"), cursor.count("the columns of a table")
    cursor.text()
    cursor.need(columns, _SMALLEST_COLUMN, "the columns of a table")
    if not columns:
        raise FormatError("a table without columns")
    cursor.budget.spend(columns * _COLUMN_SIZE)
    names = [cursor.text() for _ in range(columns)]
    return pa.table([_column(cursor, name, rows) for name in names], names)


def _column(cursor: Cursor, name: str, rows: int) -> pa.Array:
    code, form = cursor.flag()
    if form != dolphindb_types.VECTOR:
        raise FormatError(f"the column {name!r} is not a vector, but of form {form}")
    column = _any_column(cursor) if code == dolphindb_types.ANY_CODE else _vector(cursor, code)
    if len(column) != rows:
        raise FormatError(f"the column {name!r} has {len(column)} rows, the table {rows}")
    return column


def _any_column(cursor: Cursor) -> pa.Array:
    """Return the items as bytes: Arrow has no type for a column of mixed types."""
    count, columns = cursor.count("the rows of a vector"), cursor.count("the columns of a vector")
    _check_columns(columns)
    cursor.need(count, _SMALLEST_OBJECT, "a vector of ANY")
    cursor.budget.spend(count * _SCALAR_SIZE)
    items = []
    for _ in range(count):
        start = cursor.place
        _inner(cursor)
        items.append(cursor.data[start : cursor.place])
    type_ = BY_CODE[dolphindb_types.ANY_CODE].arrow
    return pa.ExtensionArray.from_storage(type_, pa.array(items, pa.binary()))


def _vector_with_flag(cursor: Cursor) -> pa.Array | AnyVector:
    code, form = cursor.flag()
    if form != dolphindb_types.VECTOR:
        raise FormatError(f"form {form} at byte {cursor.place - 1}, where a vector must be")
    return _vector(cursor, code)


def _flat_vector(cursor: Cursor) -> pa.Array:
    """Read keys, members or labels: values that can be compared."""
    vector = _vector_with_flag(cursor)
    if isinstance(vector, AnyVector) or pa.types.is_list(vector.type):
        raise FormatError("keys, members and labels are of one scalar type in DolphinDB")
    return vector


def _type(code: int) -> Type:
    if code not in BY_CODE:
        raise FormatError(f"not a DolphinDB value: type {code} is not supported in messages")
    return BY_CODE[code]


def _plain_type(code: int, form: str) -> Type:
    type_ = _type(code)
    if type_.kind not in FIXED_KINDS and type_.kind != "text":
        raise FormatError(f"DolphinDB has no {form} of {type_.name}")
    return type_


def _check_columns(columns: int) -> None:
    if columns != 1:
        raise FormatError(f"a vector of {columns} columns; it has one")


def _read_item(data: bytes) -> Any:
    cursor = Cursor(data)
    value = _inner(cursor)
    cursor.end()
    return value


scalars.FROM_STORAGE["ANY"] = _read_item
