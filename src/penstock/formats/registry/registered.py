"""What the formats with a schema registry share: the bytes in front of a value, and whose schema counts.

A value is a zero byte, the id of the schema that it was written with (four bytes), and the body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.errors import ConfigError, FormatError, PenstockError, TransientError, nearest
from penstock.formats.registry.registry_client import Bounded, Registry
from penstock.formats.registry.registry_model import Schema

SubjectName = Callable[[str, str, str], str]
Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]
# The id of a schema, the bytes in front of each value, and the function that writes the body.
Current = tuple[int, bytes, Write]

_HEAD = 5
_PARTS = ("value", "key")
STRATEGIES = ("topic", "record", "topic-record")


class RegistryFormat(ABC):
    """A format whose schemas stand in a registry.

    Parameters
    ----------
    registry
        Where the schemas are.
    subject
        Under which name a schema is registered: "topic" (TOPIC-value), "record" (the full name of the
        record), "topic-record" (TOPIC-RECORD), or a function of topic, record name and part.
    part
        "value" or "key": which of the two this format is for.
    auto_register
        Register the schema when the first value is written. Otherwise it must be there already.
    use_latest
        Write with the newest registered schema of the subject, whatever was given here.
    """

    name: str
    kind: str
    form = ""

    def __init__(
        self,
        registry: Registry,
        *,
        subject: str | SubjectName = "topic",
        part: str = "value",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> None:
        self.registry = registry
        self.part = _one_of("part", part, _PARTS)
        self._subject = subject if callable(subject) else _one_of("subject", subject, STRATEGIES)
        self._register = auto_register
        self._use_latest = use_latest
        self._writers: Bounded[str, Current] = Bounded()
        self._readers: Bounded[bytes, Read] = Bounded()

    def encode(self, value: Any, topic: str = "") -> bytes:
        """Give the bytes of a value, with the id of its schema in front."""
        _, head, write = self._current(topic)
        try:
            return head + write(value)
        except Exception as error:
            raise FormatError(
                f"this {type(value).__name__} does not fit the {self.name} schema of "
                f"subject {self.subject_for(topic)!r}: {_text(error)}"
            ) from error

    def decode(self, data: bytes, topic: str = "") -> Any:
        """Give the value of some bytes, as the schema says that they were written with."""
        head = data[:_HEAD]
        read = self._readers.get(head) or self._new_reader(head)
        try:
            return read(data[_HEAD:])
        except Exception as error:
            raise FormatError(
                f"these {len(data)} bytes are no {self.name} of schema {_id(head)}"
                f"{f' in topic {topic!r}' if topic else ''}: {_text(error)}"
            ) from error

    def subject_for(self, topic: str) -> str:
        """Give the subject under which the schema for a topic is registered."""
        if callable(self._subject):
            return self._subject(topic, self._record_name(), self.part)
        if self._subject == "record":
            return self._record_name()
        if not topic:
            raise ConfigError(
                f"{self.name} with subject={self._subject!r} needs the topic: encode(value, topic)"
            )
        last = self.part if self._subject == "topic" else self._record_name()
        return f"{topic}-{last}"

    @abstractmethod
    def _record_name(self) -> str:
        """Give the full name of what the given schema describes."""

    @abstractmethod
    def _own_schema(self) -> Schema:
        """Give the schema to write with, as it is registered."""

    @abstractmethod
    def _writer(self, schema: Schema) -> Write:
        """Make the function that writes bodies with a schema."""

    @abstractmethod
    def _reader(self, schema: Schema) -> Read:
        """Make the function that reads bodies that were written with a schema."""

    def _current(self, topic: str) -> Current:
        kept = self._writers.get(topic)
        if kept and not self._use_latest:
            return kept
        subject = self.subject_for(topic)
        if not self._use_latest:
            schema = self._own_schema()
            if self._register:
                schema_id = self.registry.register(subject, schema)
            else:
                schema_id = self.registry.lookup(subject, schema).id
            return self._new_writer(topic, schema_id, schema)
        latest = self.registry.latest(subject, self.form)
        if kept and kept[0] == latest.id:
            return kept
        self._check_kind(latest.schema, ConfigError, f"subject {subject!r}")
        return self._new_writer(topic, latest.id, latest.schema)

    def _new_writer(self, topic: str, schema_id: int, schema: Schema) -> Current:
        try:
            write = self._writer(schema)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"schema {schema_id} is not a schema to write with: {_text(error)}"
            ) from error
        made = (schema_id, b"\0" + schema_id.to_bytes(4, "big"), write)
        self._writers[topic] = made
        return made

    def _new_reader(self, head: bytes) -> Read:
        schema_id = _id(head)
        schema = self.registry.find(schema_id, self.form)
        if schema is None:
            raise FormatError(
                f"these bytes name schema {schema_id}, which the registry at {self.registry.url} "
                "does not have: they were written with another registry, or are not of this format"
            )
        self._check_kind(schema, FormatError, f"schema {schema_id}")
        try:
            read = self._reader(schema)
        except TransientError:
            raise
        except Exception as error:  # a schema may be anything, and so may what a parser makes of it
            raise FormatError(
                f"values of schema {schema_id} cannot be read: {_text(error)}"
            ) from error
        self._readers[head] = read
        return read

    def _check_kind(self, schema: Schema, error: type[PenstockError], what: str) -> None:
        if schema.kind != self.kind:
            raise error(f"{what} is {schema.kind}, and this format is for {self.kind}")


def _id(head: bytes) -> int:
    if len(head) < _HEAD or head[0] != 0:
        raise FormatError(
            f"bytes that begin with {head.hex(' ') or 'nothing'} carry no schema id: "
            "a zero byte and four bytes of id were expected; were they written with a schema registry?"
        )
    return int.from_bytes(head[1:], "big")


def _one_of(name: str, given: str, allowed: tuple[str, ...]) -> str:
    if given in allowed:
        return given
    raise ConfigError(f"{name}={given!r}: {nearest(str(given), allowed)}")


def _text(error: Exception) -> str:
    return f"{str(error) or type(error).__name__:.500}"
