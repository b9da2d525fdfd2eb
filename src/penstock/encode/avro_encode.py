"""Rows as Avro, column by column: a plan is made once for the types of the columns and a schema.

Every branch of a union, default and misfit of a type is decided when the plan is made. What is left to a
row is its nulls and the range of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.avro_scalars import fits_exactly, scalar_encode, with_own_length
from penstock.encode.column_bytes import (
    Encode,
    gathered,
    items_of,
    joined,
    numbers,
    optional,
    pairs_of,
    refuse_where,
    repeated,
    required,
    varints,
    zigzag,
)
from penstock.errors import ConfigError, nearest
from penstock.formats.avro.avro_primitives import number_bytes
from penstock.formats.avro.avro_schema import (
    Names,
    Parsed,
    branch_name,
    kind_of,
    refuse_empty_items,
    resolved,
)
from penstock.formats.avro.avro_writer import default_bytes

_NULL = "null"


def avro_encode(parsed: Parsed, type_: pa.DataType, path: str = "") -> Encode:
    """Return the encode of a column by a schema; `path` is the column's name in messages.

    A row is a column of structs: its fields are the columns.
    """
    return _Plan(parsed.names).nullable(type_, parsed.root, path)


class _Plan:
    """Makes encodes; recursive schemas end where the types of the columns end."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def nullable(self, type_: pa.DataType, schema: Any, path: str) -> Encode:
        """Return the encode of a column that may have nulls."""
        schema = resolved(schema, self._names)
        if kind_of(schema, self._names) != "union":
            return required(self._value(type_, schema, path), path)
        kinds = [kind_of(branch, self._names) for branch in schema]
        encode = self._union(type_, schema, path)
        if _NULL not in kinds:
            return required(encode, path)
        return optional(encode, number_bytes(kinds.index(_NULL)))

    def _union(self, type_: pa.DataType, branches: list[Any], path: str) -> Encode:
        """Return the encode of values that are not null, with the numbers of their branches."""
        names = {branch_name(branch, self._names): at for at, branch in enumerate(branches)}
        names.pop(_NULL, None)
        fields = {field.name for field in type_} if pa.types.is_struct(type_) else set()
        if len(names) > 1 and names.keys() == fields:
            return self._choice(type_, [(branches[at], at) for at in names.values()], path)
        at = self._branch(type_, branches, path)
        return self._in_branch(type_, (branches[at], at), path)

    def _in_branch(self, type_: pa.DataType, branch: tuple[Any, int], path: str) -> Encode:
        encode = self._value(type_, resolved(branch[0], self._names), path)
        head = number_bytes(branch[1])
        return lambda column: joined(head, encode(column))

    def _choice(self, type_: pa.DataType, branches: list[tuple[Any, int]], path: str) -> Encode:
        """Return the encode of a struct as the decode reads unions: a field for each type, one is set."""
        parts = []
        for branch in branches:
            name = branch_name(branch[0], self._names)
            encode = self._in_branch(type_.field(name).type, branch, _inner(path, name))
            parts.append((name, optional(encode, b"")))

        def encode_rows(rows: pa.Array) -> pa.Array:
            given = sum(numbers(rows.field(name).is_valid()).astype(int) for name, _ in parts)
            refuse_where(np.asarray(given) != 1, rows, path, "has not one value for its union")
            return joined(*(part(rows.field(name)) for name, part in parts))

        return encode_rows

    def _branch(self, type_: pa.DataType, branches: list[Any], path: str) -> int:
        """Return the branch for a column: the one of its own type, or the first that it fits."""
        resolved_branches = [resolved(branch, self._names) for branch in branches]
        order = sorted(
            range(len(branches)), key=lambda at: not fits_exactly(type_, resolved_branches[at])
        )
        for at in order:
            try:
                self._value(type_, resolved_branches[at], path)
            except ConfigError:
                continue
            return at
        others = [branch for branch in resolved_branches if branch != _NULL]
        if len(others) == 1:
            self._value(type_, others[0], path)  # raises with the reason
        kinds = " or ".join(kind_of(branch, self._names) for branch in branches)
        raise _misfit(type_, kinds, path)

    def _value(self, type_: pa.DataType, schema: Any, path: str) -> Encode:
        kind = kind_of(schema, self._names)
        if kind in _NESTED:
            is_kind, method = _NESTED[kind]
            if not is_kind(type_):
                raise _misfit(type_, kind, path)
            made: Encode = getattr(self, method)(type_, schema, path)
            return made
        encode = scalar_encode(type_, schema, kind, path)
        if encode is None:
            raise _misfit(type_, _shown(schema, kind), path)
        return encode

    def _record(self, type_: pa.DataType, schema: Any, path: str) -> Encode:
        columns = {field.name: (at, field.type) for at, field in enumerate(type_)}
        names = [field["name"] for field in schema["fields"]]
        for name in columns:
            if name not in names:
                raise ConfigError(
                    f"the Avro record {schema['name']} has no field for the column "
                    f"{_inner(path, name)!r}; {nearest(name, names)}"
                )
        parts = [self._field(columns, field, path, schema["name"]) for field in schema["fields"]]

        def encode(rows: pa.Array) -> pa.Array:
            pieces = [part(rows) for part in parts]
            return joined(*pieces) if pieces else repeated(b"", len(rows))

        return encode

    def _field(
        self, columns: dict[str, tuple[int, pa.DataType]], field: Any, path: str, record: str
    ) -> Encode:
        """Return the encode of a field for the rows that contain it."""
        name = field["name"]
        if name in columns:
            at, type_ = columns[name]
            encode = self.nullable(type_, field["type"], _inner(path, name))
            return lambda rows: encode(rows.field(at))
        if "default" not in field:
            raise ConfigError(
                f"the field {name!r} of the Avro record {record} has no default, and there is no "
                f"column {_inner(path, name)!r}; {nearest(name, list(columns))}"
            )
        default = default_bytes(field["type"], field["default"], self._names)
        return lambda rows: repeated(default, len(rows))

    def _array(self, type_: pa.DataType, schema: Any, path: str) -> Encode:
        refuse_empty_items(schema, self._names)
        encode_items = self.nullable(type_.value_type, schema["items"], f"{path}[]")

        def encode(lists: pa.Array) -> pa.Array:
            items, counts = items_of(lists)
            return _block(encode_items(items), counts)

        return encode

    def _map(self, type_: pa.DataType, schema: Any, path: str) -> Encode:
        if not pa.types.is_string(type_.key_type):
            raise _misfit(type_, "a map with texts as keys", path)
        encode_values = self.nullable(type_.item_type, schema["values"], f"{path}[]")

        def encode(maps: pa.Array) -> pa.Array:
            keys, values, counts = pairs_of(maps)
            return _block(joined(with_own_length(keys), encode_values(values)), counts)

        return encode


def _block(items: pa.Array, counts: Any) -> pa.Array:
    """Return arrays or maps: one block with its count before it, and the end."""
    blocks = joined(varints(zigzag(counts)), gathered(items, counts), b"\0")
    return pc.if_else(pa.array(counts == 0), pa.scalar(b"\0"), blocks)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_))


_NESTED: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "record": (pa.types.is_struct, "_record"),
    "array": (_is_list, "_array"),
    "map": (pa.types.is_map, "_map"),
}


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(schema: Any, kind: str) -> str:
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    return f"{kind} ({logical})" if logical else kind


def _misfit(type_: pa.DataType, kind: str, path: str) -> ConfigError:
    return ConfigError(
        f"the column {path!r} is {type_}, and the Avro schema has {kind}: "
        "change the schema, or cast the column in a step"
    )
