"""The rows that Protobuf messages are expected to be.

They are made from protobuf's own messages, by code that has nothing in common with the kernel's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import copysign, isnan
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass
class Json:
    """A value that is JSON text in a row."""

    value: Any


def expected_or_none(message_class: Any, body: bytes) -> dict[str, Any] | None:
    """Return the row of a body, or None where it is bad."""
    try:
        return expected(message_class.FromString(body))
    except (DecodeError, ValueError, json_format.Error):
        return None


def same(left: Any, right: Any) -> bool:
    """Return whether two cells are equal: -0.0 is not 0.0, and NaN is NaN."""
    if isinstance(right, Json):
        return isinstance(left, str) and json.loads(left) == right.value
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        if isnan(left) or isnan(right):
            return isnan(left) and isnan(right)
        return left == right and copysign(1, left) == copysign(1, right)
    return type(left) is type(right) and bool(left == right)


def expected(message: Any) -> dict[str, Any]:
    """Return the row of a message; raise ValueError where a value has no place in a row."""
    return {field.name: _expected_field(message, field) for field in message.DESCRIPTOR.fields}


def _expected_field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.message_type and field.message_type.GetOptions().map_entry:
        key, item = field.message_type.fields
        for each in value:
            _expected(key, each)
        pairs = [
            (_expected(key, k), _expected(item, v)) for k, v in sorted(value.items(), key=_key)
        ]
        text = key.type == key.TYPE_STRING
        return pairs if text else [{"key": k, "value": v} for k, v in pairs]
    if field.is_repeated:
        return [_expected(field, each) for each in value]
    present = not field.has_presence or message.HasField(field.name)
    if field.message_type and not field.message_type.fields:
        return present
    return _expected(field, value) if present else None


def _key(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _expected(field: Any, value: Any) -> Any:
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64):
        return Decimal(value)
    if not field.message_type:
        return _text(value) if field.type == field.TYPE_STRING else value
    if field.message_type.file.package != "google.protobuf" or field.message_type.name == "Any":
        return expected(value) if field.message_type.fields else True
    return _expected_known(field.message_type.name, value)


def _text(value: Any) -> Any:
    if isinstance(value, bytes):  # protobuf does not check the text of proto2
        raise ValueError("not UTF-8")
    return value


def _expected_known(name: str, value: Any) -> Any:
    if name == "Timestamp":
        if not (-62_135_596_800 <= value.seconds <= 253_402_300_799 and 0 <= value.nanos < 10**9):
            raise ValueError("not a time")
        return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name == "Duration":
        json_format.MessageToJson(value)
        return (Decimal(value.seconds) + Decimal(value.nanos).scaleb(-9)).quantize(Decimal("1e-9"))
    if name == "FieldMask":
        return list(value.paths)
    if name == "Empty":
        return True
    if name.endswith("Value") and name not in ("Value", "ListValue"):
        return _expected(value.DESCRIPTOR.fields[0], value.value)
    return Json(_expected_json(value))


def _expected_json(value: Any) -> Any:
    if value.DESCRIPTOR.name == "Value" and value.WhichOneof("kind") is None:
        return None
    if value.DESCRIPTOR.name == "Struct":
        return {key: _expected_json(each) for key, each in value.fields.items()}
    if value.DESCRIPTOR.name == "ListValue":
        return [_expected_json(each) for each in value.values]
    return json_format.MessageToDict(value)
