"""What a connector does to its records: transforms, then rows for its sink, or records for a topic.

Definitions do not name it: `connect/translation.py` makes it of a connector's configuration.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from pydantic import Field, InstanceOf
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.errors import ConfigError, TransientError
from penstock.formats.connect import Schema
from penstock.pipeline import Decode, Step
from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.connect_records import Records, as_imported
from penstock.steps.connect_transforms.record_columns import VALUE
from penstock.steps.connect_transforms.row_shapes import Fields, Record, Shape
from penstock.steps.connect_transforms.sink_rows import rows_of


@runtime_checkable
class HasSchemas(Protocol):
    """A decode that knows the schemas of keys and values; None: text of JSON."""

    @property
    def key_schema(self) -> Schema | None:
        """Return the schema of keys."""

    @property
    def value_schema(self) -> Schema | None:
        """Return the schema of values."""

    @property
    def unknown(self) -> frozenset[str]:
        """Return which of them no record has shown yet."""


class ConnectStep(Step):
    """Transforms and predicates of Kafka Connect, and what a connector's sink takes."""

    name = "connect"

    chain: tuple[InstanceOf[TransformSpec], ...] = Field(default=(), description="The transforms.")
    shape: InstanceOf[Shape] = Field(default_factory=Record, description="What comes out.")
    # Of a source connector: the topic of its records, or how the name of the topic between begins.
    topic: str | None = None
    topic_prefix: str | None = None
    # Whether each of its records has a value: the schema of values is required then.
    never_null: bool = False

    def behind(self, decode: Decode) -> Step:
        """Return the step for the schemas that the decode has now."""
        if not isinstance(decode, HasSchemas):
            raise ConfigError(f"the transforms of a connector need its decode, not {decode.name!r}")
        if isinstance(self.shape, Fields) and VALUE in decode.unknown:
            raise TransientError(
                "no record with a schema is in the topics yet, and the columns are its fields: waiting "
                "for the first one"
            )
        return BoundConnectStep(
            **{name: getattr(self, name) for name in ConnectStep.model_fields},
            key_schema=decode.key_schema,
            value_schema=decode.value_schema,
            unknown=decode.unknown,
        )

    def mixes(self) -> None:
        """Return None: records are independent."""


class BoundConnectStep(ConnectStep):
    """The step of one attempt."""

    name = "bound_connect"

    key_schema: InstanceOf[Schema] | None = Field(repr=False)
    value_schema: InstanceOf[Schema] | None = Field(repr=False)
    unknown: frozenset[str] = frozenset()

    @property
    def traces_in_bulk(self) -> bool:
        """Return True: each row comes of one record."""
        return True

    def behind(self, _decode: Decode) -> Step:
        """Return the step: it is bound."""
        return self

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows behind the transforms."""
        topic = self._topic()
        frame = rows if topic is None else as_imported(rows, topic)
        value = self.value_schema
        if value is not None and self.never_null:
            value = replace(value, optional=False)
        records = Records(frame, self.key_schema, value, self.unknown)
        return rows_of(records.transformed(self.chain), self.shape)

    def _topic(self) -> Column | None:
        if self.topic_prefix is not None:
            return f.substring(f.col("topic"), len(self.topic_prefix) + 1, 249)
        return None if self.topic is None else f.lit(self.topic)
