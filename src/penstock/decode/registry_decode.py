"""What the decodes with schemas share: where the schema is from, and what happens when it changes."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field, InstanceOf, model_validator
from pyspark.sql.types import StructType

from penstock.decode.kernels.outcome import Kernel
from penstock.decode.kernels.registry_kernel import (
    FormatColumns,
    RegistryPlan,
    Wanted,
    registry_kernel,
)
from penstock.decode.workers import ArrowDecode
from penstock.errors import ConfigError
from penstock.formats.registry import Schema
from penstock.formats.registry.registry_options import RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RegistryDecode(ArrowDecode):
    """Base of the decodes whose columns come from a schema, registered or given."""

    registry: RegistryOptions | None = Field(
        default=None,
        description="The schema registry of the records: its address, or a mapping with `url`, "
        "`username`, `password`, ... Without one every record is a bare body of the given schema.",
    )
    schema_: str | dict[str, Any] | None = Field(
        default=None,
        alias="schema",
        description="The schema whose columns the table has, as text, as a mapping, or the path of a "
        "file; default: the version of the subject in the registry.",
    )
    subject: str | None = Field(
        default=None,
        min_length=1,
        description="The subject in the registry; default: `TOPIC-value` (for a key `TOPIC-key`).",
    )
    version: int | Literal["latest"] = Field(
        default="latest", description="The version of the subject whose columns the table has."
    )
    evolve: Literal["follow", "fail"] = Field(
        default="follow",
        description="When records come with a version that has other columns: `follow`: the table gets "
        "them, and the pipeline goes on; `fail`: it stops.",
    )
    incompatible: Literal["dead_letters", "stop"] = Field(
        default="dead_letters",
        description="What happens to records whose schema cannot be read into the table's columns: they "
        "are dead letters, or the pipeline stops.",
    )

    @property
    @abstractmethod
    def format_columns(self) -> FormatColumns:
        """Return how the format's schemas become columns."""

    @model_validator(mode="after")
    def _has_a_schema(self) -> RegistryDecode:
        if self.registry is None:
            if self.schema_ is None:
                raise ValueError("give 'registry', or 'schema' for records without a registry")
            if self.subject or self.version != "latest":
                raise ValueError("'subject' and 'version' need 'registry'")
        elif self.schema_ is not None and (self.subject or self.version != "latest"):
            raise ValueError("give 'schema', or 'subject' and 'version': the table has one schema")
        return self

    def bind(self, topics: Sequence[str], part: str = "value") -> BoundDecode:
        """Return the decode with the schema that the table has now."""
        plan = RegistryPlan(
            self.format_columns,
            self.registry,
            self._wanted(topics, part),
            latest=self.schema_ is None and self.version == "latest",
            evolves=self.evolve == "follow",
            stops=self.incompatible == "stop",
        )
        plan.table_schema()
        return BoundDecode(
            metadata=self.metadata,
            key=super().bind(topics, part).key,
            key_prefix=self.key_prefix,
            plan=plan,
            options=self.identity(),
        )

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def kernel(self) -> Callable[[], Kernel]:
        """Raise: the schema is not known yet."""
        raise self._unbound()

    def row_schema(self) -> StructType:
        """Raise: the schema is not known yet."""
        raise self._unbound()

    def _unbound(self) -> ConfigError:
        return ConfigError(f"the decode {self.name!r} is used before it is bound")

    def own_schema(self) -> Schema:
        """Return the schema that is given with the definition."""
        return Schema(schema_text(self.schema_), self.format_columns.kind)

    def _wanted(self, topics: Sequence[str], part: str) -> Wanted:
        if self.schema_ is not None or self.registry is None:
            return Wanted(self.own_schema())
        registry, form = self.registry.fresh_client(), self.format_columns.form
        subject = self.subject or _subject_of(topics, part)
        if self.version == "latest":
            found = registry.latest(subject, form)
        else:
            found = registry.version(subject, self.version, form)
        if found.schema.kind != self.format_columns.kind:
            raise ConfigError(
                f"version {found.version} of subject {subject!r} is {found.schema.kind}, and the "
                f"decode is {self.name!r}: name the decode of that format"
            )
        return Wanted.registered(found)


class BoundDecode(ArrowDecode):
    """A decode with the schema that the table has: what an attempt runs with."""

    name = "bound"
    plan: InstanceOf[RegistryPlan] = Field(repr=False)
    # The identity of the decode that it is made of.
    options: str

    def identity(self) -> str:
        """Return the options of the decode, with the schema that the table has."""
        wanted = self.plan.wanted
        known = f"version {wanted.version}" if wanted.version else wanted.schema.text
        key = f", key {self.key.identity()}" if self.key else ""
        return f"{self.options}, {known}{key}"

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(registry_kernel, self.plan)

    def row_schema(self) -> StructType:
        """Return the columns of the schema."""
        return cast(StructType, StructType.fromDDL(self.plan.table_schema().ddl()))

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the failed records of a batch whose rows are written, whatever the latest version is."""
        settled = self.model_copy(update={"plan": replace(self.plan, latest=False)})
        return super(BoundDecode, settled).failures(records)


def schema_text(given: str | Mapping[str, Any] | None) -> str:
    """Return the text of a schema that is given as text, as a mapping or as the path of a file.

    >>> schema_text({"type": "string"}), schema_text(' "string" ')
    ('{"type": "string"}', ' "string" ')
    """
    if isinstance(given, Mapping):
        return json.dumps(given)
    if given is None or given.lstrip()[:1] in ("{", "[", '"'):
        return given or ""
    try:
        return Path(given).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the schema {given!r:.200} is neither JSON nor a file that can be read: {error}"
        ) from error


def _subject_of(topics: Sequence[str], part: str) -> str:
    if len(topics) == 1:
        return f"{topics[0]}-{part}"
    read = f"{len(topics)} topics" if topics else "topics that match a pattern"
    raise ConfigError(
        f"the source reads {read}, and which subject has the schema is not known: give 'subject'"
    )
