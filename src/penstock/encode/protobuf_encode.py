"""Rows as Protobuf messages, column by column: a plan is made once for the columns and a message.

Fields are written in the order of their numbers. A null is an absent field; where absence is not
distinct from the default value (proto3 without `optional`), a null is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Counts,
    Encode,
    byte_lengths,
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
)
from penstock.encode.protobuf_scalars import (
    LENGTH,
    TYPE_NAMES,
    Scalar,
    default_test,
    scalar_of,
    wire_of,
)
from penstock.encode.well_known_messages import ONE_FIELD, well_known_encode
from penstock.errors import ConfigError, RefusedError, nearest

_PAIR = {"key", "value"}


class _Part(NamedTuple):
    """A field with its column."""

    at: int
    encode: Encode
    oneof: str | None
    is_given: Encode = pc.is_valid


def message_encode(message: Any, type_: pa.DataType, path: str = "") -> Encode:
    """Return the encode of a column of structs by a message's descriptor."""
    if encode := well_known_encode(message.full_name, type_, path):
        return encode
    if message.full_name in ONE_FIELD and not pa.types.is_struct(type_):
        return _field(message.fields[0], type_, path)
    if not message.fields and pa.types.is_boolean(type_):
        return _always_set(path)
    if not pa.types.is_struct(type_):
        raise _misfit(type_, f"the message {message.full_name}", path)
    parts = _parts(message, type_, path)
    oneofs = _shared_oneofs(parts)

    def encode_rows(rows: pa.Array) -> pa.Array:
        for name, members in oneofs.items():
            _refuse_two(rows, members, f"{path}.{name}".lstrip("."))
        pieces = [part.encode(rows.field(part.at)) for part in parts]
        return joined(*pieces) if pieces else repeated(b"", len(rows))

    return encode_rows


def _parts(message: Any, type_: pa.DataType, path: str) -> list[_Part]:
    fields = message.fields_by_name
    columns = {field.name: (at, field.type) for at, field in enumerate(type_)}
    for name in columns:
        if name not in fields:
            raise ConfigError(
                f"the Protobuf message {message.full_name} has no field for the column "
                f"{_inner(path, name)!r}; {nearest(name, list(fields))}"
            )
    parts = []
    for field in sorted(message.fields, key=lambda each: each.number):
        if field.name in columns:
            at, column = columns[field.name]
            encode = _field(field, column, _inner(path, field.name))
            oneof = field.containing_oneof
            is_given = _is_true if _is_flag(field, column) else pc.is_valid
            parts.append(_Part(at, encode, oneof.name if oneof else None, is_given))
        elif field.is_required:
            raise ConfigError(
                f"the field {field.name!r} of the Protobuf message {message.full_name} is required, "
                f"and there is no column {_inner(path, field.name)!r}"
            )
    return parts


def _field(field: Any, type_: pa.DataType, path: str) -> Encode:
    if _is_map(field):
        return _maps(field, type_, path)
    if field.is_repeated:
        return _lists(field, type_, path)
    scalar = _scalar(field, type_, path)
    if scalar is None:
        if _is_flag(field, type_):
            return optional(_set_where_true(field), b"")
        inner = message_encode(field.message_type, type_, path)
        return _absent_or_required(field, _tagged(field, with_size(inner)), path)
    encode = _tagged(field, scalar.encode)
    if field.has_presence:
        return _absent_or_required(field, encode, path)
    return required(_without_defaults(field, encode), path)


def _is_flag(field: Any, type_: pa.DataType) -> bool:
    """Return whether a column says that a message without fields is set, as the decode reads it."""
    message = field.message_type
    return message is not None and not message.fields and bool(pa.types.is_boolean(type_))


def _is_true(column: pa.Array) -> pa.Array:
    return pc.fill_null(column, False)


def _set_where_true(field: Any) -> Encode:
    empty = pa.scalar(tag(field.number, LENGTH) + b"\0")
    return lambda column: pc.if_else(column, empty, pa.scalar(b""))


def _always_set(path: str) -> Encode:
    def encode(column: pa.Array) -> pa.Array:
        refuse_where(~numbers(column), column, path, "cannot be left out of a list or a map")
        return repeated(b"", len(column))

    return encode


def _absent_or_required(field: Any, encode: Encode, path: str) -> Encode:
    return required(encode, path) if field.is_required else optional(encode, b"")


def _without_defaults(field: Any, encode: Encode) -> Encode:
    is_default = default_test(field)

    def run(column: pa.Array) -> pa.Array:
        return pc.if_else(is_default(column), pa.scalar(b""), encode(column))

    return run


def _lists(field: Any, type_: pa.DataType, path: str) -> Encode:
    if not pa.types.is_list(type_):
        raise _misfit(type_, "a repeated field", path)
    scalar = _scalar(field, type_.value_type, f"{path}[]")
    if scalar and scalar.wire != LENGTH and field.is_packed:
        return _packed(field, required(scalar.encode, f"{path}[]"))
    inner = (
        scalar.encode
        if scalar
        else with_size(message_encode(field.message_type, type_.value_type, f"{path}[]"))
    )
    item = required(_tagged(field, inner), f"{path}[]")

    def encode(lists: pa.Array) -> pa.Array:
        items, counts = items_of(lists)
        return gathered(item(items), counts)

    return optional(encode, b"")


def _packed(field: Any, item: Encode) -> Encode:
    head = tag(field.number, LENGTH)

    def encode(lists: pa.Array) -> pa.Array:
        items, counts = items_of(lists)
        return _unless_empty(joined(head, sized(gathered(item(items), counts))), counts)

    return optional(encode, b"")


def _maps(field: Any, type_: pa.DataType, path: str) -> Encode:
    if not pa.types.is_map(type_) and not _is_pairs(type_):
        raise _misfit(type_, "a map", path)
    is_map, entry = pa.types.is_map(type_), field.message_type.fields_by_name
    key_type = type_.key_type if is_map else type_.value_type.field("key").type
    item_type = type_.item_type if is_map else type_.value_type.field("value").type
    key = _entry_part(entry["key"], key_type, f"{path} (key)")
    value = _entry_part(entry["value"], item_type, f"{path}[]")
    head = tag(field.number, LENGTH)

    def encode(maps: pa.Array) -> pa.Array:
        keys, values, counts = pairs_of(maps) if is_map else _pairs_of_lists(maps, path)
        return gathered(joined(head, sized(joined(key(keys), value(values)))), counts)

    return optional(encode, b"")


def _is_pairs(type_: pa.DataType) -> bool:
    """Return whether a column is a map as the decode reads it if its keys are not texts."""
    pair = type_.value_type if pa.types.is_list(type_) else None
    return bool(pair and pa.types.is_struct(pair) and {each.name for each in pair} == _PAIR)


def _pairs_of_lists(lists: pa.Array, path: str) -> tuple[pa.Array, pa.Array, Counts]:
    pairs, counts = items_of(lists)
    if pairs.null_count:
        raise RefusedError(f"column {path!r} has a null instead of a key with its value")
    return pairs.field("key"), pairs.field("value"), counts


def _entry_part(field: Any, type_: pa.DataType, path: str) -> Encode:
    scalar = _scalar(field, type_, path)
    inner = scalar.encode if scalar else with_size(message_encode(field.message_type, type_, path))
    return required(_tagged(field, inner), path)


def _tagged(field: Any, encode: Encode) -> Encode:
    head = tag(field.number, wire_of(field.type))
    return lambda column: joined(head, encode(column))


def _scalar(field: Any, type_: pa.DataType, path: str) -> Scalar | None:
    """Return how a field that is not a message is written; None for a message."""
    if field.type == field.TYPE_GROUP:
        raise ConfigError(f"the field {path!r} is a Protobuf group, which is not supported")
    if field.type == field.TYPE_MESSAGE:
        return None
    scalar = scalar_of(field, type_, path)
    if scalar is None:
        raise _misfit(type_, f"a field of type {TYPE_NAMES[field.type]}", path)
    return scalar


def with_size(encode: Encode) -> Encode:
    """Return an encode of nested messages: their size before them."""
    return lambda column: sized(encode(column))


def sized(items: pa.Array) -> pa.Array:
    """Return bytes with their size before them.

    >>> sized(pa.array([b"ab"])).to_pylist()
    [b'\\x02ab']
    """
    return joined(varints(byte_lengths(items).astype(np.uint64)), items)


def tag(number: int, wire: int) -> bytes:
    """Return what precedes a field: its number and the kind of bytes that follow.

    >>> tag(1, 0), tag(16, 2)
    (b'\\x08', b'\\x82\\x01')
    """
    data: bytes = varints(np.array([number << 3 | wire], np.uint64))[0].as_py()
    return data


def _unless_empty(items: pa.Array, counts: Counts) -> pa.Array:
    return pc.if_else(pa.array(counts == 0), pa.scalar(b""), items)


def _shared_oneofs(parts: Sequence[_Part]) -> dict[str, list[_Part]]:
    members: dict[str, list[_Part]] = {}
    for part in parts:
        if part.oneof:
            members.setdefault(part.oneof, []).append(part)
    return {name: columns for name, columns in members.items() if len(columns) > 1}


def _refuse_two(rows: pa.Array, members: list[_Part], path: str) -> None:
    given = sum(numbers(part.is_given(rows.field(part.at))).astype(int) for part in members)
    if np.any(np.asarray(given) > 1):
        raise RefusedError(f"two columns of the oneof {path!r} have a value in the same row")


def _is_map(field: Any) -> bool:
    entry = field.message_type
    return bool(field.is_repeated and entry and entry.GetOptions().map_entry)


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _misfit(type_: pa.DataType, wanted: str, path: str) -> ConfigError:
    return ConfigError(
        f"the column {path!r} is {type_}, and the Protobuf schema has {wanted}: "
        "change the schema, or cast the column in a step"
    )
