"""Which schema a sink writes with, and its id: decided before the first record, on the driver alone."""

from __future__ import annotations

from typing import NamedTuple

from penstock.encode.derived_schemas import derived_name
from penstock.encode.format_options import RegistryFormatOptions
from penstock.errors import ConfigError
from penstock.formats.registry import Registered, Registry, Schema
from penstock.formats.registry.http import RefusedError


class Target(NamedTuple):
    """What is written: the topic, and the part of its records; `path` names the column in messages."""

    topic: str
    part: str
    path: str = ""


class Registration:
    """The use of a registry for one part of the records of a topic."""

    def __init__(self, options: RegistryFormatOptions, target: Target) -> None:
        self.options = options
        self.target = target
        self.registry: Registry = options.registry.fresh_client()

    @property
    def derived_name(self) -> str:
        """Return the name of a derived schema's record."""
        return self.options.name or derived_name(self.target.topic, self.target.part)

    def subject(self, record: str) -> str:
        """Return the subject for a record's full name."""
        topic, part = self.target.topic, self.target.part
        by_strategy = {"topic": f"{topic}-{part}", "record": record}
        return by_strategy.get(self.options.subject, f"{topic}-{record}")

    def latest(self, kind: str, form: str = "") -> Registered:
        """Return the latest schema of the subject, which must exist and be of this kind."""
        subject = self.subject(self.options.name or "")
        latest = self.registry.latest(subject, form)
        if latest.schema.kind != kind:
            raise ConfigError(
                f"the schema of subject {subject!r} is {latest.schema.kind}, and the format is {kind}"
            )
        return latest

    def known(self, record: str, form: str = "") -> Registered | None:
        """Return the latest schema of a record's subject; None where there is none yet."""
        try:
            return self.registry.latest(self.subject(record), form)
        except ConfigError as error:
            cause = error.__cause__
            if isinstance(cause, RefusedError) and cause.status == 404:
                return None
            raise

    def schema_id(self, record: str, schema: Schema) -> int:
        """Register a schema, or find it where the definition forbids that; return its id."""
        subject = self.subject(record)
        if self.options.register_:
            return self.registry.register(subject, schema)
        return self.registry.lookup(subject, schema).id


def head_of(schema_id: int) -> bytes:
    """Return the bytes before each value: a zero, and the id of its schema.

    >>> head_of(7)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return b"\0" + schema_id.to_bytes(4, "big")
