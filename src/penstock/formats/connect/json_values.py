"""Single values in the JSON form of JsonConverter, as defaults of schemas have them, and back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from penstock.errors import ConfigError
from penstock.formats.connect.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Type

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_DAY = date(1970, 1, 1)
_LOGICAL = {DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64, DECIMAL: Type.BYTES}
_PYTHON: dict[Type, tuple[type, ...]] = {
    Type.INT8: (int,),
    Type.INT16: (int,),
    Type.INT32: (int,),
    Type.INT64: (int,),
    Type.FLOAT32: (int, float),
    Type.FLOAT64: (int, float),
    Type.STRING: (str,),
    Type.BOOLEAN: (bool,),
}


def scale_of(schema: Schema) -> int:
    """Return the digits after the point of a schema of Decimal.

    >>> from penstock.formats.connect import decimal
    >>> scale_of(decimal(2))
    2
    """
    given = schema.parameters.get(SCALE)
    try:
        scale = int(str(given))
    except ValueError:
        raise ConfigError(
            f"a schema {DECIMAL} has a parameter '{SCALE}', a whole number; {given!r:.60} was given"
        ) from None
    if not 0 <= scale <= 38:
        raise ConfigError(f"a decimal here has 0 to 38 digits after the point; {scale} was given")
    return scale


def from_json(schema: Schema, given: Any) -> Any:
    """Return the value that a JSON value stands for; a value of Python stays what it is.

    >>> from penstock.formats.connect import decimal
    >>> from_json(decimal(2), "AN8="), from_json(decimal(2), 1.5)
    (Decimal('2.23'), Decimal('1.50'))
    """
    if given is None:
        return None
    try:
        return _read(schema, given)
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise ConfigError(
            f"{given!r:.100} is not a value of the schema {schema.name or schema.type.value}: {error}"
        ) from None


def _read(schema: Schema, given: Any) -> Any:
    match schema.type:
        case Type.ARRAY:
            return [from_json(_inner(schema.values), each) for each in _of_type(given, (list,))]
        case Type.MAP:
            pairs = given.items() if isinstance(given, Mapping) else given
            keys, values = _inner(schema.keys), _inner(schema.values)
            return [(from_json(keys, key), from_json(values, value)) for key, value in pairs]
        case Type.STRUCT:
            return {
                each.name: from_json(each.schema, given.get(each.name)) for each in schema.fields
            }
    return _read_scalar(schema, given)


def _read_scalar(schema: Schema, given: Any) -> Any:
    kind = logical_name(schema)
    if kind == DECIMAL:
        return _decimal(given, scale_of(schema))
    if kind == DATE:
        return given if isinstance(given, date) else _FIRST_DAY + timedelta(days=given)
    if kind == TIMESTAMP:
        return given if isinstance(given, datetime) else _EPOCH + timedelta(milliseconds=given)
    if schema.type is Type.BYTES:
        return b64decode(given, validate=True) if isinstance(given, str) else bytes(given)
    if isinstance(given, bool) and schema.type is not Type.BOOLEAN:
        raise TypeError("a boolean was given")
    return _of_type(given, _PYTHON[schema.type])


def logical_name(schema: Schema) -> str | None:
    """Return the name of the logical type that a schema has; None for a plain one.

    >>> from penstock.formats.connect import INT32, date
    >>> logical_name(date()), logical_name(INT32)
    ('org.apache.kafka.connect.data.Date', None)
    """
    return schema.name if _LOGICAL.get(schema.name or "") is schema.type else None


def to_json(schema: Schema, given: Any) -> Any:
    """Return a value, or its JSON form, in its JSON form.

    >>> from penstock.formats.connect import decimal
    >>> to_json(decimal(2), Decimal("2.23"))
    'AN8='
    """
    value = from_json(schema, given)
    if value is None:
        return None
    match schema.type:
        case Type.ARRAY:
            return [to_json(_inner(schema.values), each) for each in value]
        case Type.MAP:
            keys, values = _inner(schema.keys), _inner(schema.values)
            pairs = [[to_json(keys, key), to_json(values, each)] for key, each in value]
            return dict(pairs) if keys.type is Type.STRING else pairs
        case Type.STRUCT:
            return {each.name: to_json(each.schema, value.get(each.name)) for each in schema.fields}
    return _scalar_json(schema, value)


def _scalar_json(schema: Schema, value: Any) -> Any:
    kind = logical_name(schema)
    if kind == DATE:
        return (value - _FIRST_DAY).days
    if kind == TIMESTAMP:
        return (value - _EPOCH) // timedelta(milliseconds=1)
    if kind == DECIMAL:
        value = unscaled_bytes(value, scale_of(schema))
    return b64encode(value).decode() if schema.type is Type.BYTES else value


def unscaled_bytes(value: Decimal, scale: int) -> bytes:
    """Return the digits of a decimal as a whole number, in as few bytes as Java takes.

    >>> unscaled_bytes(Decimal("-0.01"), 2)
    b'\\xff'
    """
    number = int(value.scaleb(scale))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _decimal(given: Any, scale: int) -> Decimal:
    if isinstance(given, str):
        number = int.from_bytes(b64decode(given, validate=True), "big", signed=True)
        return Decimal(number).scaleb(-scale)
    return Decimal(str(given)).quantize(Decimal(1).scaleb(-scale))


def _of_type(given: Any, types: tuple[type, ...]) -> Any:
    if not isinstance(given, types):
        raise TypeError(f"a value of type {type(given).__name__} was given")
    return given


def _inner(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 - a schema is refused without
    return schema
