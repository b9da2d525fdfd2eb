"""From a value to the bytes of a message: its form, and the bytes after the form's flag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_columns import to_array, to_table
from penstock.formats.dolphindb import dolphindb_texts, dolphindb_types, fixed, scalars
from penstock.formats.dolphindb.arrow_conversion import has_type, known, rows_of, type_of
from penstock.formats.dolphindb.choosing import typed
from penstock.formats.dolphindb.containers import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.cursor import DEEPEST, int32
from penstock.formats.dolphindb.dolphindb_objects import of_objects, to_vector
from penstock.formats.dolphindb.dolphindb_types import FIXED_KINDS, Type, width
from penstock.formats.dolphindb.packing import write_one, write_scale, zero_ended
from penstock.formats.dolphindb.wire_reading import read_object
from penstock.formats.format_values import Shape, loaded, shape

_NULL_OBJECT = bytes(3)
_BLOCK = 65_535
_SETS = (set, frozenset)
# The scalars whose shape only this format knows.
_ONLY_HERE = (scalars.Null, scalars.Point, scalars.Duration)
_IN_PAIRS = FIXED_KINDS | {"text"}
_AS_KEYS = FIXED_KINDS | {"text", "symbol", "blob", "void"}


def write_object(value: Any, depth: int = 0) -> bytes:
    """Return the bytes of one value, flag and all, or raise `FormatError`."""
    if depth > DEEPEST:
        raise FormatError(f"values are nested more than {DEEPEST} deep")
    if type(value) in _CONTAINERS:
        return _CONTAINERS[type(value)](value, depth)
    if isinstance(value, _ONLY_HERE):
        return _scalar(value)
    if isinstance(value, _SETS):
        return _set(ValueSet(_of_kind(of_objects(list(value)), _AS_KEYS)), depth)
    return _by_shape(value, shape(value), depth)


def _by_shape(value: Any, value_shape: Shape, depth: int) -> bytes:
    if value_shape is Shape.SCALAR:
        return _arrow_scalar(value) if loaded(value, "pyarrow", "Scalar") else _scalar(value)
    if value_shape is Shape.TABLE:
        return _table(to_table(value), depth)
    if value_shape is Shape.MAPPING:
        return _dictionary(_mapping(value), depth)
    if getattr(value, "ndim", 1) == 2:
        rows, columns = value.shape
        values = _of_kind(to_vector(value.T.reshape(-1)), _IN_PAIRS)
        return _matrix(Matrix(values, rows, columns), depth)
    return _vector(to_vector(value), depth, count())


def _scalar(value: Any) -> bytes:
    type_, simple = typed(value)
    return _flag(type_.code, dolphindb_types.SCALAR) + write_one(type_, simple)


def _arrow_scalar(value: pa.Scalar) -> bytes:
    array = known(
        pa.array([value.as_py()], value.type) if value.is_valid else pa.nulls(1, value.type)
    )
    if not has_type(array, _IN_PAIRS | {"blob"}):
        return _scalar(value.as_py())
    type_ = type_of(array)
    return _flag(type_.code, dolphindb_types.SCALAR) + _body(type_, array)


def _vector(vector: pa.Array | AnyVector, depth: int, bases: Iterator[int]) -> bytes:
    if isinstance(vector, AnyVector):
        items = (write_object(each, depth + 1) for each in vector)
        return _head(dolphindb_types.ANY_CODE, len(vector)) + b"".join(items)
    if pa.types.is_list(vector.type):
        return _array_vector(vector)
    type_ = type_of(vector)
    if type_.kind == "symbol" and len(vector):
        return _head(dolphindb_types.SYMBOL_WITH_BASE, len(vector)) + dolphindb_texts.write_symbols(
            vector, next(bases)
        )
    return _head(type_.code, len(vector)) + _body(type_, vector)


def _table(table: pa.Table, depth: int) -> bytes:
    names = table.column_names
    if not names or len(set(names)) != len(names):
        raise FormatError(f"a table needs columns with different names, not {names}")
    bases = count()
    columns = [_vector(known(to_array(each)), depth, bases) for each in table.columns]
    start = _flag(0, dolphindb_types.TABLE) + int32(table.num_rows) + int32(len(names)) + b"\0"
    return b"".join([start, *map(zero_ended, names), *columns])


def _pair(pair: Pair, _depth: int) -> bytes:
    items = _of_kind(known(pair.items), _IN_PAIRS)
    type_ = type_of(items)
    return _flag(type_.code, dolphindb_types.PAIR) + int32(2) + int32(1) + _body(type_, items)


def _matrix(matrix: Matrix, depth: int) -> bytes:
    values = _of_kind(known(matrix.values), _IN_PAIRS)
    type_ = type_of(values)
    given = [each for each in (matrix.row_labels, matrix.column_labels) if each is not None]
    labels = (matrix.row_labels is not None) + 2 * (matrix.column_labels is not None)
    sizes = int32(matrix.rows) + int32(matrix.columns)
    mark = _flag(type_.code, dolphindb_types.MATRIX)
    vectors = (_vector(_of_kind(known(each), _AS_KEYS), depth, count()) for each in given)
    return b"".join([mark, bytes((labels,)), *vectors, mark, sizes, _body(type_, values)])


def _set(value_set: ValueSet, depth: int) -> bytes:
    members = _different(_of_kind(known(value_set.members), _AS_KEYS))
    return _flag(type_of(members).code, dolphindb_types.SET) + _vector(members, depth, count())


def _dictionary(dictionary: Dictionary, depth: int) -> bytes:
    names = _different(_of_kind(known(dictionary.names), _AS_KEYS))
    contents = dictionary.contents
    if not isinstance(contents, AnyVector):
        contents = known(contents)
    if not isinstance(contents, AnyVector) and pa.types.is_list(contents.type):
        contents = rows_of(contents)
    mixed = isinstance(contents, AnyVector)
    mark = _flag(
        dolphindb_types.ANY_CODE if mixed else type_of(contents).code, dolphindb_types.DICTIONARY
    )
    bases = count()
    return mark + _vector(names, depth, bases) + _vector(contents, depth, bases)


def _mapping(value: Any) -> Dictionary:
    names = list(value)
    keys = _of_kind(of_objects(names), _AS_KEYS) if names else pa.array([], pa.string())
    return Dictionary(keys, of_objects(list(value.values())))


def _different(names: pa.Array) -> pa.Array:
    """Refuse keys and members that are different here, but one null for DolphinDB: NaN, null, empty."""
    plain = names.cast(pa.string()) if pa.types.is_dictionary(names.type) else names
    nulls = names.null_count
    if pa.types.is_floating(plain.type):
        nulls += pc.sum(pc.is_nan(plain)).as_py() or 0
    if pa.types.is_string(plain.type) or pa.types.is_binary(plain.type):
        nulls += pc.sum(pc.equal(pc.binary_length(plain), 0)).as_py() or 0
    if nulls > 1:
        raise FormatError(f"{nulls} keys or members are null for DolphinDB; it takes one at most")
    return names


def _of_kind(vector: pa.Array | AnyVector, kinds: frozenset[str]) -> pa.Array:
    if not has_type(vector, kinds):
        raise FormatError(
            "keys, members, labels, pairs and matrices hold scalars of one type in DolphinDB"
        )
    return vector


def _flag(code: int, form: int) -> bytes:
    return bytes((code, form))


def _head(code: int, rows: int, columns: int = 1) -> bytes:
    return _flag(code, dolphindb_types.VECTOR) + int32(rows) + int32(columns)


def _body(type_: Type, array: pa.Array) -> bytes:
    """Return the items of a vector, and their scale before them where the type has one."""
    if type_.kind in FIXED_KINDS:
        return _scale(type_, array) + fixed.to_wire(type_, array)
    if type_.kind == "text":
        return dolphindb_texts.write_texts(array)
    if type_.kind == "blob":
        return dolphindb_texts.write_blobs(array)
    if type_.kind == "any":
        return b"".join(map(_checked_object, array.storage.to_pylist()))
    return b""


def _array_vector(array: pa.Array) -> bytes:
    """Return a whole array vector: rows of numbers, in blocks."""
    lengths, values = _without_empty_rows(array)
    type_ = type_of(values)
    cells = fixed.to_wire(type_, values)
    parts = [
        _head(dolphindb_types.ARRAY_OFFSET + type_.code, len(array), len(values)),
        _scale(type_, values),
    ]
    start = 0
    for first in range(0, len(lengths), _BLOCK):
        block = lengths[first : first + _BLOCK]
        stop = start + int(block.sum()) * width(type_)
        parts += [_counts(block), cells[start:stop]]
        start = stop
    return b"".join(parts)


def _checked_object(data: bytes | None) -> bytes:
    if data is None:
        return _NULL_OBJECT
    read_object(data)
    return data


def _scale(type_: Type, array: pa.Array) -> bytes:
    return write_scale(type_, array.type.scale) if type_.kind == "decimal" else b""


def _counts(lengths: Any) -> bytes:
    size = next(each for each in (1, 2, 4) if int(lengths.max()) < 256**each)
    start = len(lengths).to_bytes(2, "little") + bytes((size, 0))
    return start + bytes(lengths.astype(f"<u{size}").tobytes())


def _without_empty_rows(array: pa.Array) -> tuple[Any, pa.Array]:
    """Put one null cell into each empty row: DolphinDB has no other."""
    values = array.flatten()
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    if (lengths > 0).all():
        return lengths, values
    filled = np.maximum(lengths, 1)
    real = np.repeat(lengths > 0, filled)
    places = np.zeros(len(real), np.int64)
    places[real] = np.arange(len(values))
    return filled, values.take(pa.array(places, mask=~real))


_CONTAINERS: dict[type, Callable[[Any, int], bytes]] = {
    AnyVector: lambda value, depth: _vector(value, depth, count()),
    Pair: _pair,
    Matrix: _matrix,
    ValueSet: _set,
    Dictionary: _dictionary,
}
