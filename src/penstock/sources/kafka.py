"""Records from Kafka topics, read by Spark's own connector from offsets that the engine decides."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from penstock.pipeline import Offsets, Partition, Reading, Source
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")


def _names(given: Any) -> Any:
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else given


def _milliseconds(given: Any) -> Any:
    """Read a point in time: ISO-8601 (UTC where it names no zone) or milliseconds since 1970."""
    if isinstance(given, str) and not given.isdigit():
        given = datetime.fromisoformat(given.replace("Z", "+00:00"))
    if isinstance(given, datetime):
        aware = given if given.tzinfo else given.replace(tzinfo=timezone.utc)
        return int(aware.timestamp() * 1000)
    return given


# The Java client's defaults (500 records a poll, 1 MiB a partition) starve Spark: docs/decisions/002.
_FETCHING = {
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 * 2**20),
    "kafka.fetch.max.bytes": str(64 * 2**20),
    # A task that reads a topic which is being deleted waits for so long before it gives up.
    "kafkaConsumer.pollTimeoutMs": "30000",
    "kafka.default.api.timeout.ms": "30000",
}
# A task that has read a partition to its end asks for more at once, in vain, and then where that end is.
# The broker answers in order: without this the second answer comes after the wait for the first, 500 ms.
_IN_BATCHES = {"kafka.fetch.max.wait.ms": "10"}


class AtTime(BaseModel):
    """The first record at or after a point in time, in each partition."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    timestamp: Annotated[
        int,
        BeforeValidator(_milliseconds),
        WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "format": "date-time"}]}),
    ] = Field(description="ISO-8601, or milliseconds since 1970.")


class AtOffsets(BaseModel):
    """Explicit offsets; partitions that are not named start at the earliest record."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    offsets: dict[str, dict[int, int]] = Field(description="{topic: {partition: offset}}")


class KafkaSource(Source):
    """Records of Kafka topics: a list of topics, or all that match a pattern.

    The first start is at the group's committed offsets; where it has none, at `start`.
    """

    name = "kafka"
    main_option = "topics"

    topics: Annotated[
        list[str],
        BeforeValidator(_names),
        WithJsonSchema(
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
        ),
    ] = Field(default_factory=list, description="Topics to read: one, or several.")
    pattern: str | None = Field(
        default=None, description="Instead of topics: a regular expression for topic names."
    )
    start: Literal["earliest", "latest", "committed"] | AtTime | AtOffsets = Field(
        default="earliest",
        description="Where to start when the group has committed nothing; "
        "`committed`: refuse to start then.",
    )
    on_data_loss: Literal["fail", "skip"] = Field(
        default="fail",
        description="When Kafka has removed records before they were read, by retention or with their "
        "topic: `fail` ends the pipeline; `skip` goes on without them, counts them and says so.",
    )
    headers: bool = Field(default=False, description="Read the records' headers, too.")
    max_records_per_batch: int = Field(
        default=1_000_000, ge=1, description="The most records that one batch takes."
    )
    min_records_per_batch: int = Field(
        default=0,
        ge=0,
        description="Wait for so many records before a batch begins, at most for `max_wait`; "
        "0: a batch begins as soon as there is something.",
    )
    max_wait: Duration = Field(
        default=1.0, gt=0, description="The longest wait for `min_records_per_batch`."
    )
    min_partitions: int | None = Field(
        default=None, ge=1, description="Split large partitions until there are this many tasks."
    )

    @field_validator("pattern")
    @classmethod
    def _is_a_pattern(cls, given: str | None) -> str | None:
        try:
            re.compile(given or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return given

    @model_validator(mode="after")
    def _topics_or_pattern(self) -> KafkaSource:
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("give either topics or pattern")
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> KafkaSource:
        if self.min_records_per_batch > self.max_records_per_batch:
            raise ValueError(
                f"min_records_per_batch is {self.min_records_per_batch}, which is more than "
                f"max_records_per_batch, {self.max_records_per_batch}"
            )
        return self

    def real_time_obstacle(self) -> str | None:
        """Say what is in the way of real-time mode."""
        if self.on_data_loss == "skip":
            return "what 'on_data_loss: skip' leaves out cannot be counted there; leave it out"
        return None

    def reads(self, topic: str) -> bool:
        """Say whether this is one of its topics."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics

    def own(self, by_partition: Mapping[Partition, T]) -> dict[Partition, T]:
        """Return what of this is about partitions of its topics."""
        return {where: what for where, what in by_partition.items() if self.reads(where[0])}

    def read(self, reading: Reading) -> DataFrame:
        """Return the records as Spark streams them."""
        reader = reading.spark.readStream.format("kafka").options(**self.options(reading))
        if reading.in_real_time:
            return reader.option("failOnDataLoss", "true").load()
        # Spark ends a query for more than lost records, and tells less: the engine looks itself.
        reader = reader.option("failOnDataLoss", "false")
        if self.min_records_per_batch:
            reader = reader.option("minOffsetsPerTrigger", self.min_records_per_batch)
            reader = reader.option("maxTriggerDelay", f"{int(self.max_wait * 1000)}ms")
        return reader.option("maxOffsetsPerTrigger", self.max_records_per_batch).load()

    def read_range(self, reading: Reading, end: Offsets) -> DataFrame:
        """Return the records between two sets of offsets, once more, as a batch."""
        options = self.options(reading) | {"endingOffsets": offsets_as_json(end)}
        options.pop("subscribe", None)
        options.pop("subscribePattern", None)
        assigned = defaultdict(list)
        for topic, partition in end:
            assigned[topic].append(partition)
        reader = reading.spark.read.format("kafka").options(**options)
        return reader.option("assign", json.dumps(assigned)).load()

    def options(self, reading: Reading) -> dict[str, str]:
        """Return the options for Spark's connector."""
        return {
            **_FETCHING,
            **({} if reading.in_real_time else _IN_BATCHES),
            **reading.connection.spark(),
            **self._which(),
            "startingOffsets": offsets_as_json(reading.start),
            "includeHeaders": str(self.headers).lower(),
            **({"minPartitions": str(self.min_partitions)} if self.min_partitions else {}),
        }

    def _which(self) -> dict[str, str]:
        if self.pattern is not None:
            return {"subscribePattern": self.pattern}
        if self.on_data_loss == "skip":
            # A list must be there as a whole; what matches a pattern may come and go.
            return {"subscribePattern": "|".join(map(re.escape, self.topics))}
        return {"subscribe": ",".join(self.topics)}


def offsets_as_json(offsets: Offsets) -> str:
    """Write offsets as Spark's connector wants them.

    >>> offsets_as_json({("t", 0): 5, ("t", 1): 7})
    '{"t": {"0": 5, "1": 7}}'
    """
    nested: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), offset in offsets.items():
        nested[topic][str(partition)] = offset
    return json.dumps(nested)
