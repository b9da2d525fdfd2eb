"""Avro's logical types as Python values: decimals, UUIDs, dates and times, exactly or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from penstock.errors import FormatError

Convert = Callable[[Any], Any]


class Logical(NamedTuple):
    """A Python value to what Avro writes for it, and back."""

    to_avro: Convert
    from_avro: Convert


DURATION = ("months", "days", "millis")
"""The numbers of a duration, as columns name them."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)
_MILLI, _MICRO = timedelta(milliseconds=1), timedelta(microseconds=1)
# Python cannot convert longer ones to text, and they do not occur in practice.
_MOST_DIGITS = 4000


def logical_of(schema: Any) -> Logical | None:
    """Return the conversion of a schema, or None: in Avro an unknown logical type is its plain type."""
    if not isinstance(schema, Mapping):
        return None
    kind, name = schema["type"], schema.get("logicalType")
    if name == "decimal" and kind in {"bytes", "fixed"}:
        return _decimal(schema)
    if name == "uuid" and kind == "fixed" and schema["size"] != 16:
        return None
    return _SIMPLE.get((str(kind), str(name)))


def is_duration(schema: Any) -> bool:
    """Return whether a schema is Avro's duration: three numbers in twelve bytes."""
    return (
        isinstance(schema, Mapping)
        and (schema["type"], schema.get("logicalType"), schema.get("size"))
        == ("fixed", "duration", 12)
    )  # fmt: skip


def _decimal(schema: Mapping[str, Any]) -> Logical | None:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if not 0 < precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        return None
    size = schema.get("size")

    def to_avro(value: Any) -> bytes:
        unscaled = _unscaled(_is(Decimal, value), precision, scale)
        return unscaled.to_bytes(size or unscaled.bit_length() // 8 + 1, "big", signed=True)

    def from_avro(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True)
        if len(raw) > _MOST_DIGITS or abs(unscaled) >= 10**precision:
            raise FormatError(f"a decimal of {len(raw)} bytes has more than {precision} digits")
        return Decimal(f"{unscaled}E-{scale}")

    return Logical(to_avro, from_avro)


def _unscaled(value: Decimal, precision: int, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or (value and value.adjusted() >= precision - scale):
        raise FormatError(f"{value} is not a decimal({precision},{scale})")
    kept = max(0, len(digits) + exponent + scale)
    if any(digits[kept:]):
        raise FormatError(f"{value} has more than {scale} digits after the point")
    # Zeros are added to the text, never multiplied: an exponent may be of any size.
    text = "".join(map(str, digits[:kept])).ljust(kept if value else 0, "0")
    return (-1 if sign else 1) * int(text or "0")


def _is(kind: type[Any], value: Any) -> Any:
    if isinstance(value, kind) and not (kind is date and isinstance(value, datetime)):
        return value
    raise FormatError(f"{value!r:.60} is a {type(value).__name__}, and a {kind.__name__} is needed")


def _whole(span: timedelta, unit: timedelta, value: Any) -> int:
    number, rest = divmod(span, unit)
    # A pandas Timestamp is a datetime with nanoseconds on top.
    if rest or getattr(value, "nanosecond", None):
        raise FormatError(f"{value!r} is finer than the schema's {unit.microseconds} microseconds")
    return number


def _timestamp(unit: timedelta, epoch: datetime = _EPOCH) -> Logical:
    def to_avro(value: Any) -> int:
        zone = _is(datetime, value).tzinfo
        if zone is None and epoch.tzinfo is not None:
            raise FormatError(
                f"{value!r} has no time zone: give it one, or use local-timestamp in the schema"
            )
        if zone is not None and epoch.tzinfo is None:
            raise FormatError(f"{value!r} has a time zone, and local-timestamp has none")
        return _whole(value - epoch, unit, value)

    return Logical(to_avro, lambda raw: epoch + raw * unit)


def _time(unit: timedelta) -> Logical:
    def to_avro(value: Any) -> int:
        if _is(time, value).tzinfo is not None:
            raise FormatError(f"{value!r} has a time zone, and Avro's times have none")
        return _whole(datetime.combine(_FIRST_DAY, value) - _LOCAL_EPOCH, unit, value)

    def from_avro(raw: int) -> time:
        if not 0 <= raw < timedelta(days=1) // unit:
            raise FormatError(f"{raw} is not a time of day")
        return (_LOCAL_EPOCH + raw * unit).time()

    return Logical(to_avro, from_avro)


def _uuid(value: Any) -> UUID:
    try:
        return UUID(value) if isinstance(value, str) else UUID(int=_is(UUID, value).int)
    except ValueError:
        raise FormatError(f"{value!r:.60} is not a UUID") from None


_SIMPLE = {
    ("string", "uuid"): Logical(lambda value: str(_uuid(value)), UUID),
    ("fixed", "uuid"): Logical(lambda value: _uuid(value).bytes, lambda raw: UUID(bytes=raw)),
    ("int", "date"): Logical(
        lambda value: (_is(date, value) - _FIRST_DAY).days,
        lambda raw: _FIRST_DAY + timedelta(days=raw),
    ),
    ("int", "time-millis"): _time(_MILLI),
    ("long", "time-micros"): _time(_MICRO),
    ("long", "timestamp-millis"): _timestamp(_MILLI),
    ("long", "timestamp-micros"): _timestamp(_MICRO),
    ("long", "local-timestamp-millis"): _timestamp(_MILLI, _LOCAL_EPOCH),
    ("long", "local-timestamp-micros"): _timestamp(_MICRO, _LOCAL_EPOCH),
}
