"""Whether messages of one Protobuf schema can be read with another: decided before a body is read.

Fields are matched by number, as in the bodies. A type may change only where each value keeps its meaning.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from penstock.errors import ConfigError

_F = FieldDescriptor
# The types that a field may have later, next to its own: the bytes are the same, and so is the value.
_LATER = {
    _F.TYPE_BOOL: {_F.TYPE_INT32, _F.TYPE_UINT32, _F.TYPE_INT64, _F.TYPE_UINT64},
    _F.TYPE_INT32: {_F.TYPE_INT64, _F.TYPE_ENUM},
    _F.TYPE_UINT32: {_F.TYPE_UINT64, _F.TYPE_INT64},
    _F.TYPE_SINT32: {_F.TYPE_SINT64},
    _F.TYPE_ENUM: {_F.TYPE_INT32, _F.TYPE_INT64},
    _F.TYPE_STRING: {_F.TYPE_BYTES},
    _F.TYPE_BYTES: {_F.TYPE_STRING},
}
_NAMES = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(_F).items()
    if name.startswith("TYPE_")
}


def check_evolution(written: Descriptor, wanted: Descriptor) -> None:
    """Raise `ConfigError` where bodies of the message `written` cannot be read as `wanted`.

    >>> from google.protobuf.wrappers_pb2 import Int32Value, Int64Value
    >>> check_evolution(Int32Value.DESCRIPTOR, Int64Value.DESCRIPTOR)
    >>> check_evolution(Int64Value.DESCRIPTOR, Int32Value.DESCRIPTOR)
    Traceback (most recent call last):
    penstock.errors.ConfigError: google.protobuf.Int32Value, value: field 1 was written as int64 and \
cannot be read as int32; allowed: a field with another number
    """
    _Check(wanted.full_name).messages(written, wanted, "")


class _Check:
    """Compares each pair of messages once: they may contain themselves."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._compared: set[tuple[str, str]] = set()

    def messages(self, written: Descriptor, wanted: Descriptor, path: str) -> None:
        pair = (written.full_name, wanted.full_name)
        if pair in self._compared:
            return
        self._compared.add(pair)
        for field in wanted.fields:
            before = written.fields_by_number.get(field.number)
            if before is not None:
                self._fields(before, field, f"{path}{field.name}")
            elif field.is_required:
                reason = f"field {field.number} is required, and was not written"
                raise ConfigError(f"{self._name}, {path}{field.name}: {reason}")

    def _fields(self, written: FieldDescriptor, wanted: FieldDescriptor, path: str) -> None:
        same = written.type == wanted.type or wanted.type in _LATER.get(written.type, ())
        if not same or (written.is_repeated and not wanted.is_repeated):
            raise ConfigError(
                f"{self._name}, {path}: field {wanted.number} was written as {_named(written)} and "
                f"cannot be read as {_named(wanted)}; allowed: a field with another number"
            )
        if wanted.message_type is not None:
            self.messages(written.message_type, wanted.message_type, f"{path}.")


def _named(field: FieldDescriptor) -> str:
    return f"{'repeated ' if field.is_repeated else ''}{_NAMES[field.type]}"
