"""Records from Kafka topics, read by Spark's own connector from offsets that the engine decides."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.pipeline import Offsets, Partition, Reading, Source
from penstock.pipeline.source_log import SourceLog, partition_names
from penstock.pipeline.values import Duration, offsets_as_json
from penstock.sources.kafka.log import KafkaLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    # A task that reads a topic which is being deleted waits this long before it gives up.
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
        description="Wait for this many records before a batch begins, at most for `max_wait`; "
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
    def _options_fit(self) -> KafkaSource:
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("give either topics or pattern")
        if self.min_records_per_batch > self.max_records_per_batch:
            raise ValueError(
                f"min_records_per_batch is {self.min_records_per_batch}, which is more than "
                f"max_records_per_batch, {self.max_records_per_batch}"
            )
        return self

    def real_time_obstacle(self) -> str | None:
        """Return what prevents real-time mode."""
        if self.may_skip:
            return "what 'on_data_loss: skip' leaves out cannot be counted there; leave it out"
        return None

    def reads(self, topic: str) -> bool:
        """Return whether this is one of its topics."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics

    def named_topics(self) -> list[str]:
        """Return the topics of the list."""
        return self.topics

    def topic_pattern(self) -> str | None:
        """Return the pattern."""
        return self.pattern

    @property
    def may_skip(self) -> bool:
        """Return whether records that Kafka removed before they were read are skipped."""
        return self.on_data_loss == "skip"

    def open_log(self, connection: Connection, group: str, timeout: float = 10.0) -> SourceLog:
        """Connect to the cluster."""
        return KafkaLog(connection, group, timeout)

    def partitions(self, log: SourceLog, *, is_known: bool) -> list[Partition]:
        """Return the partitions of its topics; once they are known, some of a list may be gone."""
        if self.pattern is None and not is_known:
            return log.partitions(self.topics)
        pattern = self._pattern()
        return log.partitions(self.topics if pattern is None else re.compile(pattern))

    def _pattern(self) -> str | None:
        """Return the pattern that is read: a list must exist as a whole, topics of a pattern may go."""
        if self.pattern is None and self.may_skip:
            return "|".join(map(re.escape, self.topics))
        return self.pattern

    def first_offsets(self, log: SourceLog, partitions: list[Partition]) -> Offsets:
        """Return where to start in partitions of which no offset is known: as `start` says."""
        if not partitions:
            return {}
        if self.start == "committed":
            raise ConfigError(
                f"start is 'committed', and the group has no offset for {partition_names(partitions)}; "
                "commit one, or start at earliest, latest, a timestamp or explicit offsets"
            )
        if self.start == "latest":
            return log.latest(partitions)
        if isinstance(self.start, AtTime):
            return log.offsets_at(self.start.timestamp, partitions)
        starts = log.oldest(partitions)
        if isinstance(self.start, AtOffsets):
            given = self.start.offsets
            starts |= {(t, p): given[t][p] for t, p in partitions if p in given.get(t, {})}
        return starts

    def with_headers(self) -> KafkaSource:
        """Return the same source, which reads the records' headers, too."""
        return self.model_copy(update={"headers": True})

    def read(self, reading: Reading) -> DataFrame:
        """Return the records as Spark streams them."""
        reader = reading.spark.readStream.format("kafka").options(**self.options(reading))
        pattern = self._pattern()
        if pattern is None:
            reader = reader.option("subscribe", ",".join(self.topics))
        else:
            reader = reader.option("subscribePattern", pattern)
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
        assigned = defaultdict(list)
        for topic, partition in end:
            assigned[topic].append(partition)
        reader = reading.spark.read.format("kafka").options(**self.options(reading))
        reader = reader.option("assign", json.dumps(assigned))
        return reader.option("endingOffsets", offsets_as_json(end)).load()

    def options(self, reading: Reading) -> dict[str, str]:
        """Return the options for Spark's connector, without which topics it reads."""
        return {
            **_FETCHING,
            **({} if reading.in_real_time else _IN_BATCHES),
            **reading.connection.spark(),
            "startingOffsets": offsets_as_json(reading.start),
            "includeHeaders": str(self.headers).lower(),
            **({"minPartitions": str(self.min_partitions)} if self.min_partitions else {}),
        }
