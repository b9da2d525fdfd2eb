"""Values of Connect schemas: as JsonConverter writes them, and as Spark's Python API has them."""

from __future__ import annotations

import base64
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy

from penstock.formats.connect import Schema, Type
from penstock.formats.connect.schema import DATE, DECIMAL, SCALE, TIMESTAMP

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLI = timedelta(milliseconds=1)


def to_spark(payload: Any, schema: Schema) -> Any:  # noqa: PLR0911
    """Return a JSON payload as a value for Arrow."""
    if payload is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return {e.name: to_spark(payload.get(e.name), e.schema) for e in schema.fields}
        case Type.ARRAY:
            return [to_spark(each, schema.values) for each in payload]
        case Type.MAP:
            pairs = payload.items() if isinstance(payload, dict) else payload
            return [(to_spark(k, schema.keys), to_spark(v, schema.values)) for k, v in pairs]
        case Type.FLOAT32 | Type.FLOAT64:
            return float(payload)
        case Type.BYTES if schema.name == DECIMAL:
            unscaled = int.from_bytes(base64.b64decode(payload), "big", signed=True)
            return Decimal(unscaled).scaleb(-int(schema.parameters[SCALE]))
        case Type.BYTES:
            return base64.b64decode(payload)
    if schema.name == DATE:
        return date(1970, 1, 1) + timedelta(days=payload)
    return EPOCH + payload * MILLI if schema.name == TIMESTAMP else payload


def from_spark(value: Any, schema: Schema) -> Any:  # noqa: PLR0911
    """Return a collected value as the JSON payload."""
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return {
                e.name: from_spark(each, e.schema)
                for e, each in zip(schema.fields, value, strict=True)
            }
        case Type.ARRAY:
            return [from_spark(each, schema.values) for each in value]
        case Type.MAP:
            pairs = [
                [from_spark(k, schema.keys), from_spark(v, schema.values)] for k, v in value.items()
            ]
            return dict(pairs) if schema.keys.type is Type.STRING else pairs
        case Type.FLOAT32 | Type.FLOAT64 if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case Type.FLOAT32:
            return float(numpy.float32(value))
        case Type.BYTES if schema.name == DECIMAL:
            return base64.b64encode(_unscaled(value, int(schema.parameters[SCALE]))).decode()
        case Type.BYTES:
            return base64.b64encode(bytes(value)).decode()
    if schema.name == DATE:
        return (value - date(1970, 1, 1)).days
    if schema.name == TIMESTAMP:
        moment = value if value.tzinfo else value.astimezone(timezone.utc)
        return (moment - EPOCH) // MILLI
    return value


def decimal_payload(text: str, scale: int) -> str:
    """Return an exact number as JsonConverter writes it."""
    return base64.b64encode(_unscaled(Decimal(text), scale)).decode()


def _unscaled(value: Decimal, scale: int) -> bytes:
    number = int(value.scaleb(scale))
    return number.to_bytes(
        (number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True
    )


def with_singles(payload: Any, schema: Schema) -> Any:
    """Return a JSON payload in which the numbers of floats are the floats that they stand for."""
    if payload is None:
        return None
    if schema.type is Type.FLOAT32 and not isinstance(payload, str):
        return float(numpy.float32(payload))
    if schema.type is Type.STRUCT:
        return {e.name: with_singles(payload[e.name], e.schema) for e in schema.fields}
    return payload
