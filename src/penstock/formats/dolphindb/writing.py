"""From a value to the bytes of a message: which form it has, and what stands behind the form's flag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FormatError
from penstock.formats.arrow.columns import to_array, to_table
from penstock.formats.dolphindb import texts, types
from penstock.formats.dolphindb.choosing import is_scalar, typed
from penstock.formats.dolphindb.containers import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.cursor import DEEPEST, int32
from penstock.formats.dolphindb.known import has_type, known, rows_of, type_of
from penstock.formats.dolphindb.objects import of_objects, to_vector
from penstock.formats.dolphindb.packing import write_one, zero_ended
from penstock.formats.dolphindb.parts import array_vector, body, flag, head
from penstock.formats.dolphindb.types import FIXED_KINDS
from penstock.formats.values import Shape, loaded, shape

_SETS = (set, frozenset)
_IN_PAIRS = FIXED_KINDS | {"text"}
_AS_KEYS = FIXED_KINDS | {"text", "symbol", "blob", "void"}


def write_object(value: Any, depth: int = 0) -> bytes:
    """Give the bytes of one value, flag and all, or raise `FormatError`."""
    if depth > DEEPEST:
        raise FormatError(f"values are nested more than {DEEPEST} deep")
    if type(value) in _CONTAINERS:
        return _CONTAINERS[type(value)](value, depth)
    if is_scalar(value):
        return _scalar(value)
    if isinstance(value, _SETS):
        return _set(ValueSet(_of_kind(of_objects(list(value)), _AS_KEYS)), depth)
    return _by_shape(value, shape(value), depth)


def _by_shape(value: Any, found: Shape, depth: int) -> bytes:
    if found is Shape.SCALAR:
        return _arrow_scalar(value) if loaded(value, "pyarrow", "Scalar") else _scalar(value)
    if found is Shape.TABLE:
        return _table(to_table(value), depth)
    if found is Shape.MAPPING:
        return _dictionary(_mapping(value), depth)
    if getattr(value, "ndim", 1) == 2:
        return _matrix(_matrix_of(value), depth)
    return _vector(to_vector(value), depth, count())


def _scalar(value: Any) -> bytes:
    found, simple = typed(value)
    return flag(found.code, types.SCALAR) + write_one(found, simple)


def _arrow_scalar(value: pa.Scalar) -> bytes:
    array = known(
        pa.array([value.as_py()], value.type) if value.is_valid else pa.nulls(1, value.type)
    )
    if not has_type(array, _IN_PAIRS | {"blob"}):
        return _scalar(value.as_py())
    found = type_of(array)
    return flag(found.code, types.SCALAR) + body(found, array)


def _vector(vector: pa.Array | AnyVector, depth: int, bases: Iterator[int]) -> bytes:
    if isinstance(vector, AnyVector):
        items = (write_object(each, depth + 1) for each in vector)
        return head(types.ANY_CODE, len(vector)) + b"".join(items)
    if pa.types.is_list(vector.type):
        return array_vector(vector)
    found = type_of(vector)
    if found.kind == "symbol" and len(vector):
        return head(types.SYMBOL_WITH_BASE, len(vector)) + texts.write_symbols(vector, next(bases))
    return head(found.code, len(vector)) + body(found, vector)


def _table(table: pa.Table, depth: int) -> bytes:
    names = table.column_names
    if not names or len(set(names)) != len(names):
        raise FormatError(f"a table needs columns with different names, not {names}")
    bases = count()
    columns = [_vector(known(to_array(each)), depth, bases) for each in table.columns]
    start = flag(0, types.TABLE) + int32(table.num_rows) + int32(len(names)) + b"\0"
    return b"".join([start, *map(zero_ended, names), *columns])


def _pair(pair: Pair, _depth: int) -> bytes:
    items = _of_kind(known(pair.items), _IN_PAIRS)
    found = type_of(items)
    return flag(found.code, types.PAIR) + int32(2) + int32(1) + body(found, items)


def _matrix(matrix: Matrix, depth: int) -> bytes:
    values = _of_kind(known(matrix.values), _IN_PAIRS)
    found = type_of(values)
    given = [each for each in (matrix.row_labels, matrix.column_labels) if each is not None]
    labels = (matrix.row_labels is not None) + 2 * (matrix.column_labels is not None)
    sizes = int32(matrix.rows) + int32(matrix.columns)
    mark = flag(found.code, types.MATRIX)
    vectors = (_vector(_of_kind(known(each), _AS_KEYS), depth, count()) for each in given)
    return b"".join([mark, bytes((labels,)), *vectors, mark, sizes, body(found, values)])


def _set(found: ValueSet, depth: int) -> bytes:
    members = _different(_of_kind(known(found.members), _AS_KEYS))
    return flag(type_of(members).code, types.SET) + _vector(members, depth, count())


def _dictionary(dictionary: Dictionary, depth: int) -> bytes:
    names = _different(_of_kind(known(dictionary.names), _AS_KEYS))
    contents = dictionary.contents
    if not isinstance(contents, AnyVector):
        contents = known(contents)
    if not isinstance(contents, AnyVector) and pa.types.is_list(contents.type):
        contents = rows_of(contents)
    mixed = isinstance(contents, AnyVector)
    mark = flag(types.ANY_CODE if mixed else type_of(contents).code, types.DICTIONARY)
    bases = count()
    return mark + _vector(names, depth, bases) + _vector(contents, depth, bases)


def _mapping(value: Any) -> Dictionary:
    names = list(value)
    keys = _of_kind(of_objects(names), _AS_KEYS) if names else pa.array([], pa.string())
    return Dictionary(keys, of_objects(list(value.values())))


def _matrix_of(value: Any) -> Matrix:
    rows, columns = value.shape
    return Matrix(_of_kind(to_vector(value.T.reshape(-1)), _IN_PAIRS), rows, columns)


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


_CONTAINERS: dict[type, Callable[[Any, int], bytes]] = {
    AnyVector: lambda value, depth: _vector(value, depth, count()),
    Pair: _pair,
    Matrix: _matrix,
    ValueSet: _set,
    Dictionary: _dictionary,
}
