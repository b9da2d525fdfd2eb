"""A pipeline, written down: source, decode, steps, sink and what is promised about them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from penstock.config import Connection, find_connection
from penstock.config.models import SafeModel
from penstock.errors import DefinitionError
from penstock.pipeline.batch import Delivery
from penstock.pipeline.derived_names import dead_letters_of, imported_into, reserved_by
from penstock.pipeline.importing import POSITIONS, Import, checked_template
from penstock.pipeline.problems import problems_of
from penstock.pipeline.registry import AnyDecode, AnySink, AnySource, AnyStep, component
from penstock.pipeline.stateful import Stateful, misplaced
from penstock.pipeline.topic_pattern import surely_fits
from penstock.pipeline.values import AnyConnection, Duration


def _or_text(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "string"})


class SparkOptions(SafeModel):
    """Where and how Spark runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    master: str = Field(
        # A task that dies, by a worker without memory say, is tried once more before the batch fails.
        default="local[*,2]",
        description="Spark's master: embedded, or a cluster.",
    )
    memory: str = Field(
        default="1g", pattern=r"^\d+[mg]$", description="Java heap of the driver, as 512m or 2g."
    )
    conf: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="Any other Spark setting, by its own name."
    )


class Restart(BaseModel):
    """How often a pipeline that failed is started again, and how long it waits before.

    A system that is away is waited for without a limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(
        default=5, ge=0, description="The most restarts in a row without one batch in between."
    )
    wait: Duration = Field(default=1.0, gt=0, description="The first wait; each is twice the last.")
    longest: Duration = Field(default=30.0, gt=0, description="The longest wait.")

    def after(self, failures: int) -> float:
        """Return how long to wait after this many consecutive failures.

        >>> [Restart().after(n) for n in (1, 2, 3, 10)]
        [1.0, 2.0, 4.0, 30.0]
        """
        return min(self.longest, self.wait * 2.0 ** min(failures - 1, 30))


class Pipeline(SafeModel):
    """Records from a source, decoded, shaped by steps, written to a sink, then committed."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="Unique name: letters, digits, dot, dash and underscore.",
    )
    connection: AnyConnection | None = Field(
        default=None,
        description="A named connection, or its settings; the default connection when left out.",
    )
    group: str = Field(
        default="", description="Consumer group whose offsets show progress; default: the name."
    )
    commit: bool = Field(
        default=True,
        description="Whether the group's offsets are committed after each batch; without it only the "
        "checkpoint knows where the pipeline is, and no Kafka tool sees its lag.",
    )
    source: AnySource = Field(description="Where the records come from.")
    decode: AnyDecode = Field(
        default="raw", validate_default=True, description="How bytes become rows."
    )
    steps: list[AnyStep] = Field(default_factory=list, description="What happens to the rows.")
    sink: AnySink = Field(description="Where the rows go.")
    delivery: Delivery = Field(
        default=Delivery.AT_LEAST_ONCE, description="What is promised when processes die."
    )
    dead_letters: AnySink | None = Field(
        default=None,
        description="Where bad records go: a sink, or the name of a topic; "
        "default: the topic `<name>.dead-letters`.",
        json_schema_extra=_or_text,
    )
    max_refused: int = Field(
        default=100,
        ge=0,
        description="The most records of one batch that steps or the sink may refuse; "
        "with more the pipeline fails.",
    )
    restart: Restart = Field(default_factory=Restart, description="What happens after a failure.")
    latency: Literal["batch", "realtime", "realtime-or-batch"] = Field(
        default="batch",
        description="`batch`: records are taken in small batches. `realtime`: each one as it comes, in "
        "tens of milliseconds, from Kafka through SQL to Kafka, at-least-once. `realtime-or-batch`: real "
        "time where the pipeline allows it.",
    )
    every: Duration = Field(
        default=0.0, ge=0, description="Shortest time between two batches; 0: as fast as can be."
    )
    state: str | None = Field(
        default=None,
        description="Folder or URI for checkpoints; default: the user's data directory.",
    )
    spark: SparkOptions = Field(default_factory=SparkOptions, description="Spark's own settings.")

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except ValidationError as error:
            name = options.get("name")
            origin = f"the definition of {name!r}" if isinstance(name, str) else "the definition"
            raise DefinitionError(problems_of(error, Pipeline), origin) from None

    @field_validator("name", "group")
    @classmethod
    def _is_not_derived(cls, given: str) -> str:
        """Refuse reserved names: pipelines that share marks or a group lose each other's records."""
        if owner := reserved_by(given):
            raise PydanticCustomError(
                "reserved",
                "given '{given}': this name belongs to the marks and dead letters of a pipeline "
                "'{owner}'; names with '.sink' or '.dead-letters' after the first part are reserved: "
                "choose another (a renamed pipeline goes on where it was with 'start' or with the "
                "group's offsets set to those of the old one)",
                {"given": given, "owner": owner},
            )
        return given

    @model_validator(mode="before")
    @classmethod
    def _dead_letters_by_topic(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("dead_letters"), str):
            return {**given, "dead_letters": {"kafka": {"topic": given["dead_letters"]}}}
        return given

    @model_validator(mode="after")
    def _delivery_is_possible(self) -> Pipeline:
        if obstacle := self.sink.delivery_obstacle(self.delivery):
            able = [each.value for each in Delivery if not self.sink.delivery_obstacle(each)]
            raise PydanticCustomError(
                "delivery",
                f"the sink {self.sink.name!r} cannot promise {self.delivery.value}: "
                f"{obstacle}; it can promise {', '.join(sorted(able))}",
            )
        return self

    @model_validator(mode="after")
    def _import_is_possible(self) -> Pipeline:
        source = self.source
        if not isinstance(source, Import):
            return self
        if self.delivery not in source.delivers:
            can = ", ".join(sorted(delivery.value for delivery in source.delivers))
            raise PydanticCustomError(
                "delivery",
                f"the source {source.name!r} cannot promise {self.delivery.value}: "
                f"{source.why_not}; it can promise {can}",
            )
        letters = self.dead_letters
        if letters and letters.stores_nothing:
            letters = (
                None  # what the import itself cannot read still goes to the topic of dead letters
            )
        if letters and not (letters.name == "kafka" and letters.model_fields_set <= {"topic"}):
            raise PydanticCustomError(
                "dead_letters",
                "the dead letters of an import are written in the transaction of its records: given the "
                f"sink {letters.name!r}; give the name of a topic of the same cluster, or leave it out",
            )
        if not self.only_imports and not self.commit:
            raise PydanticCustomError(
                "commit",
                "'commit: false' is not for a pipeline behind an import: what it has committed is "
                "removed from the topic between them, which would grow without end",
            )
        self._refuse_topics(source)
        template = source.topic or self._sink_topic
        if obstacle := source.topic_obstacle(template, alone=self.only_imports):
            raise PydanticCustomError("topic", "{obstacle}", {"obstacle": obstacle})
        if self.only_imports and not source.topic:
            try:
                checked_template(self._sink_topic, source.topic_names)
            except ValueError as error:
                raise PydanticCustomError("sink", "{error}", {"error": str(error)}) from None
        return self

    @model_validator(mode="after")
    def _at_most_once_commits(self) -> Pipeline:
        if self.delivery is Delivery.AT_MOST_ONCE and not self.commit:
            raise PydanticCustomError(
                "delivery",
                "at-most-once is kept by committing each batch before its rows are written; "
                "'commit: false' is for the other deliveries",
            )
        return self

    @model_validator(mode="after")
    def _state_is_possible(self) -> Pipeline:
        if wrong := misplaced(self.steps):
            raise PydanticCustomError("steps", "{wrong}", {"wrong": wrong})
        keepers = [step for step in self.steps if isinstance(step, Stateful)]
        if keepers and self.delivery is Delivery.AT_MOST_ONCE:
            raise PydanticCustomError(
                "delivery",
                f"the step {keepers[0].name!r} keeps state, of which at-most-once would lose a batch's "
                "share after each crash; give at-least-once or exactly-once",
            )
        return self

    @model_validator(mode="after")
    def _real_time_is_possible(self) -> Pipeline:
        if self.latency == "realtime" and (obstacle := self.real_time_obstacle()):
            raise PydanticCustomError("latency", "{obstacle}", {"obstacle": obstacle})
        return self

    def real_time_obstacle(self) -> str | None:
        """Return what in this pipeline prevents real-time mode; None if nothing does."""
        if self.delivery is not Delivery.AT_LEAST_ONCE:
            return f"real-time mode delivers at-least-once, and 'delivery' is {self.delivery.value}"
        if reason := self.source.real_time_obstacle():
            return f"source ({self.source.name}) prevents real-time mode: {reason}"
        if not self.decode.in_real_time:
            return (
                f"decode ({self.decode.name}) prevents real-time mode: it can fail on a record; "
                "use 'raw', and from_json in a sql step"
            )
        for n, step in enumerate(self.steps):
            if not step.in_java or isinstance(step, Stateful):
                why = "it keeps state" if isinstance(step, Stateful) else "it is not SQL"
            elif (why := step.mixes() or "") == "":
                continue
            return f"steps[{n}] ({step.name}) prevents real-time mode: {why}"
        if not self.sink.in_real_time:
            return f"sink ({self.sink.name}) prevents real-time mode: it writes to Kafka only"
        return None

    @property
    def in_real_time(self) -> bool:
        """Return whether each record is processed as soon as it arrives."""
        return self.latency != "batch" and self.real_time_obstacle() is None

    @model_validator(mode="after")
    def _dead_letters_are_as_exact(self) -> Pipeline:
        sink = self.dead_letter_sink
        if obstacle := sink.delivery_obstacle(self.delivery):
            raise PydanticCustomError(
                "delivery",
                f"dead letters have the same delivery as rows, and their sink {sink.name!r} cannot "
                f"promise {self.delivery.value}: {obstacle}",
            )
        return self

    @model_validator(mode="after")
    def _does_not_read_its_dead_letters(self) -> Pipeline:
        sink = self.dead_letter_sink
        topic = getattr(sink, "topic", None)
        if topic and self._surely_reads(topic) and getattr(sink, "connection", None) is None:
            raise PydanticCustomError(
                "dead_letters",
                "the source reads the topic '{topic}', to which dead letters go: a record that fails "
                "would come back forever; give 'dead_letters' another topic, or leave this one out of "
                "the source",
                {"topic": topic},
            )
        return self

    def _surely_reads(self, topic: str) -> bool:
        pattern = getattr(self.source, "topic_pattern", lambda: None)()
        if pattern is not None:
            return surely_fits(pattern, topic)
        reads = getattr(self.source, "reads", None)
        return bool(reads and reads(topic))

    def _refuse_topics(self, source: Import) -> None:
        """Raise where an import, or the pipeline behind it, would read what it writes."""
        letters = str(getattr(self.dead_letter_sink, "topic", ""))
        written = source.topic or (self._sink_topic if self.only_imports else "")
        if written in (POSITIONS, letters) or self._sink_topic == POSITIONS:
            raise PydanticCustomError(
                "topic",
                "records cannot be imported into '{topic}', which is the topic of the "
                "positions or of the dead letters; give another one",
                {"topic": written or POSITIONS},
            )
        own = getattr(self.sink, "connection", None) is None and self._sink_topic
        if own and not self.only_imports and source.reads(own):
            raise PydanticCustomError(
                "topic",
                "the sink writes to '{topic}', which the import's topic '{own}' stands for: its records "
                "would be read again without end; give another one",
                {"topic": own, "own": source.topic},
            )

    @property
    def only_imports(self) -> bool:
        """Return whether records go as they are from an import into the topic of the sink."""
        plain = self.sink.name == "kafka" and self.sink.model_fields_set <= {"topic"}
        source = self.source
        as_they_are = plain and self.decode.name == "raw" and not self.steps
        return isinstance(source, Import) and as_they_are and source.topic in ("", self._sink_topic)

    @property
    def _sink_topic(self) -> str:
        return str(getattr(self.sink, "topic", ""))

    def imported(self) -> Pipeline:
        """Return the pipeline with the topic that its import fills, where it has an import."""
        source = self.source
        if not isinstance(source, Import) or source.topic:
            return self
        topic = self._sink_topic if self.only_imports else imported_into(self.name)
        return self.model_copy(update={"source": source.into(topic)})

    @property
    def group_id(self) -> str:
        """Return the consumer group in which progress is committed."""
        return self.group or self.name

    @property
    def session_options(self) -> SparkOptions | None:
        """Return the Spark options of the definition; None to use a running session unchanged."""
        return self.spark if "spark" in self.model_fields_set else None

    def find_connection(self) -> Connection:
        """Return the connection that the definition names, or the default one of the settings."""
        return self.connection or find_connection(None)

    @property
    def dead_letter_sink(self) -> AnySink:
        """Return the sink of the dead letters."""
        return self.dead_letters or component("sink", "kafka").model_validate(  # type: ignore[return-value]
            {"topic": dead_letters_of(self.name)}
        )
