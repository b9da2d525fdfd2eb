"""Keys and values of messages for people: JSON, text or base64, decoded where their format is known."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import orjson

from penstock.errors import ConfigError, FormatError, PenstockError, missing_extra, nearest
from penstock.formats import FORMATS, Format, find_format
from penstock.formats.json_text import json_text
from penstock.formats.registry import Registry
from penstock.formats.registry.registry_model import AVRO, JSON, PROTOBUF

_REGISTERED = {"avro": AVRO, "protobuf": PROTOBUF, "json_schema": JSON}
_NAME_OF = {kind: name for name, kind in _REGISTERED.items()}
_PLAIN = ("auto", "text", "base64")
# Not a format of values here: `auto` of the client guesses binary formats, which any bytes may look like.
VALUE_FORMATS = (*_PLAIN, *(name for name in FORMATS if name != "auto"), *_REGISTERED)
_HEAD = 5
_LONG_NUMBER = re.compile(r"[0-9]{1000}")


@dataclass(frozen=True)
class ShownValue:
    """Bytes as they are shown. `text` is JSON if `is_json`; `form` is the name of what they are."""

    form: str
    text: str
    size: int
    is_json: bool = False
    schema_id: int | None = None
    error: str | None = None

    def document(self, most: int) -> dict[str, Any]:
        """Return it for a reply; what is longer than `most` characters is cut off."""
        is_long = len(self.text) > most
        as_json = self.is_json and not is_long and _is_harmless(self.text)
        reply: dict[str, Any] = {"form": self.form, "data": self.text, "size": self.size}
        if self.form == "null":
            reply["data"] = None
        elif as_json:
            reply["data"] = orjson.Fragment(self.text)
        elif self.is_json:
            reply["form"] = "text"
        if is_long:
            # A multiple of four characters of base64 can be decoded.
            reply |= {"data": self.text[: most - most % 4], "truncated": True}
        if self.schema_id is not None:
            reply["schema_id"] = self.schema_id
        if self.error is not None:
            reply["error"] = self.error
        return reply


NULL = ShownValue("null", "", 0)


class ValueReader:
    """Shows bytes in one format, or in the one that they seem to have.

    >>> ValueReader("auto").read(b'{"a": 1}', "t").form, ValueReader("auto").read(b"abc", "t").form
    ('json', 'text')
    """

    def __init__(self, form: str = "auto", registry: Registry | None = None) -> None:
        if form not in VALUE_FORMATS:
            raise ConfigError(f"{form[:100]!r} is not a format; {nearest(form, VALUE_FORMATS)}")
        if form in _REGISTERED and registry is None:
            raise ConfigError(f"format {form!r} needs a schema registry, and this server has none")
        self._form = form
        self._registry = registry
        self._formats: dict[str, Format] = {}
        self._away: PenstockError | None = None

    def read(self, data: bytes | None, topic: str) -> ShownValue:
        """Return what to show for some bytes; those that do not decode are shown as they are."""
        if data is None:
            return NULL
        if self._form == "base64":
            return _base64(data)
        if self._form == "text":
            return _text(data) or _base64(data)
        try:
            return (
                self._registered(data, topic) if self._form == "auto" else self._named(data, topic)
            )
        except PenstockError as error:
            shown = _plain(data)
            return ShownValue(
                shown.form, shown.text, shown.size, shown.is_json, error=_safe(str(error))
            )

    def _named(self, data: bytes, topic: str) -> ShownValue:
        return self._decoded(self._form, data, topic)

    def _registered(self, data: bytes, topic: str) -> ShownValue:
        """Decode with the registered schema that the first bytes name, if there is such a schema."""
        if self._registry is None or len(data) < _HEAD or data[0] != 0:
            return _plain(data)
        if self._away is not None:  # asked once for a page: each question may take seconds
            raise self._away
        schema_id = int.from_bytes(data[1:_HEAD], "big")
        try:
            schema = self._registry.find(schema_id)
        except PenstockError as error:
            self._away = error
            raise
        if schema is None or schema.kind not in _NAME_OF:
            return _plain(data)
        return self._decoded(_NAME_OF[schema.kind], data, topic)

    def _decoded(self, name: str, data: bytes, topic: str) -> ShownValue:
        if name == "json":
            shown = _json(data)
            if shown is None:
                raise FormatError("the value is not JSON")
            return shown
        try:
            value = self._format(name).decode(data, topic)
            text = json_text(_spread(value)).decode(errors="replace")
        except (ValueError, TypeError, RecursionError) as error:
            raise FormatError(f"the value cannot be shown: {error}") from error
        schema_id = int.from_bytes(data[1:_HEAD], "big") if name in _REGISTERED else None
        return ShownValue(name, text, len(data), is_json=True, schema_id=schema_id)

    def _format(self, name: str) -> Format:
        if name not in self._formats:
            self._formats[name] = registered_format(name, self._registry)
        return self._formats[name]


def registered_format(name: str, registry: Registry | None, *, use_latest: bool = False) -> Format:
    """Return a format by its name, also one with schemas in the registry."""
    if name not in _REGISTERED:
        return find_format(name)
    if registry is None:
        raise ConfigError(f"format {name!r} needs a schema registry, and this server has none")
    try:
        if name == "avro":
            from penstock.formats.avro import Avro  # noqa: PLC0415 - an extra

            return Avro(registry, use_latest=use_latest)
        if name == "protobuf":
            from penstock.formats.protobuf import Protobuf  # noqa: PLC0415 - an extra

            return Protobuf(registry, use_latest=use_latest)
        from penstock.formats.json_schema import JsonSchema  # noqa: PLC0415 - an extra

        return JsonSchema(registry, use_latest=use_latest)
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, f"the format {name!r}") from missing


def _spread(value: Any) -> Any:
    """Return a message of Protobuf as a mapping, everything else as it is."""
    if not hasattr(value, "DESCRIPTOR"):
        return value
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - an extra

    return MessageToDict(value, preserving_proto_field_name=True)


def _plain(data: bytes) -> ShownValue:
    return _json(data) or _text(data) or _base64(data)


def _json(data: bytes) -> ShownValue | None:
    try:
        orjson.loads(data)
        return ShownValue("json", data.decode(), len(data), is_json=True)
    except ValueError:
        return None


def _text(data: bytes) -> ShownValue | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    return ShownValue("text", text, len(data))


def _base64(data: bytes) -> ShownValue:
    return ShownValue("base64", b64encode(data).decode(), len(data))


def _safe(text: str) -> str:
    return text[:500].encode(errors="backslashreplace").decode()


def _is_harmless(text: str) -> bool:
    """Return whether JSON can be part of a reply: readers fail at deep nesting and at long numbers.

    >>> _is_harmless("[" * 300 + "]" * 300), _is_harmless("9" * 5000), _is_harmless('{"a": 1}')
    (False, False, True)
    """
    if _LONG_NUMBER.search(text):
        return False
    try:
        orjson.dumps(orjson.loads(text))  # it refuses more than 254 levels
    except (ValueError, TypeError, RecursionError):
        return False
    return True
