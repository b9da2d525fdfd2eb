"""One schema for values that were written with several: more optional fields, wider numbers."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import ConfigError
from penstock.formats.connect.json_values import logical_name, scale_of
from penstock.formats.connect.schema import DECIMAL, SCALE, Field, Schema, Type

_WIDER = (
    (Type.INT8, Type.INT16, Type.INT32, Type.INT64),
    (Type.FLOAT32, Type.FLOAT64),
)


def merged(first: Schema, other: Schema, path: str = "") -> Schema:
    """Return a schema for values of both; raise ConfigError where there is none.

    Fields keep the order of the first schema, and a field that only one of them has is optional.
    Names, versions and defaults are those of the first.

    >>> from penstock.formats.connect import INT32, INT64, STRING, SchemaBuilder
    >>> old = SchemaBuilder.struct().field("id", INT32).build()
    >>> new = SchemaBuilder.struct().field("id", INT64).field("note", STRING).build()
    >>> [(each.name, each.schema.type.value, each.schema.optional) for each in merged(old, new).fields]
    [('id', 'int64', False), ('note', 'string', True)]
    """
    optional = first.optional or other.optional
    if _kind(first) != _kind(other):
        return replace(first, type=_wider(first, other, path), optional=optional)
    match first.type:
        case Type.STRUCT:
            return replace(first, fields=_fields(first, other, path), optional=optional)
        case Type.ARRAY:
            return replace(
                first, values=_part(first.values, other.values, f"{path}[]"), optional=optional
            )
        case Type.MAP:
            keys = _part(first.keys, other.keys, f"{path}[key]")
            values = _part(first.values, other.values, f"{path}[]")
            return replace(first, keys=keys, values=values, optional=optional)
    if logical_name(first) == DECIMAL:
        scale = max(scale_of(first), scale_of(other))
        parameters = {**first.parameters, SCALE: str(scale)}
        return replace(first, parameters=parameters, optional=optional)
    return replace(first, optional=optional)


def _part(first: Schema | None, other: Schema | None, path: str) -> Schema:
    assert first is not None and other is not None  # noqa: S101 - a schema is refused without
    return merged(first, other, path)


def _fields(first: Schema, other: Schema, path: str) -> tuple[Field, ...]:
    theirs = {each.name: each.schema for each in other.fields}
    both = [
        Field(each.name, merged(each.schema, theirs[each.name], f"{path}.{each.name}".lstrip(".")))
        if each.name in theirs
        else Field(each.name, each.schema.or_null())
        for each in first.fields
    ]
    known = {each.name for each in first.fields}
    more = [Field(e.name, e.schema.or_null()) for e in other.fields if e.name not in known]
    return (*both, *more)


def _kind(schema: Schema) -> tuple[Type, str | None]:
    return schema.type, logical_name(schema)


def _wider(first: Schema, other: Schema, path: str) -> Type:
    is_plain = _kind(first)[1] is None and _kind(other)[1] is None
    for row in _WIDER:
        if is_plain and first.type in row and other.type in row:
            return max(first.type, other.type, key=row.index)
    raise ConfigError(
        f"{path or 'the value'}: {_shown(first)} and {_shown(other)} have no schema in common"
    )


def _shown(schema: Schema) -> str:
    return _kind(schema)[1] or schema.type.value
