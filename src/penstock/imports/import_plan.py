"""What a definition with an import means: the import alone, or an import and the pipeline behind it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.pipeline import Pipeline
from penstock.pipeline.derived_names import dead_letters_of, imported_into
from penstock.pipeline.importing import Import


@dataclass(frozen=True)
class ImportPlan:
    """An import into its topic, and the pipeline that reads it from there; None: the topic is the aim."""

    source: Import
    behind: Pipeline | None
    dead_letters: str

    @property
    def own_topic(self) -> str | None:
        """Return the topic between the import and the pipeline, if it is Penstock's own."""
        own = self.behind is not None and self.source.topic == imported_into(self.behind.name)
        return self.source.topic if own else None


def import_plan(pipeline: Pipeline) -> ImportPlan | None:
    """Return what to run for a definition; None for one that reads Kafka."""
    source = pipeline.source
    if not isinstance(source, Import):
        return None
    letters = dead_letter_topic(pipeline)
    if is_alone(pipeline):
        return ImportPlan(source.into(source.topic or pipeline.sink.topic), None, letters)  # type: ignore[attr-defined]
    source = source.into(source.topic or imported_into(pipeline.name))
    return ImportPlan(source, pipeline.model_copy(update={"source": source}), letters)


def is_alone(pipeline: Pipeline) -> bool:
    """Return whether records go as they are from the import into the topic of the sink."""
    plain = pipeline.sink.name == "kafka" and pipeline.sink.model_fields_set <= {"topic"}
    return plain and pipeline.decode.name == "raw" and not pipeline.steps


def dead_letter_topic(pipeline: Pipeline) -> str:
    """Return the topic of the records that an import cannot take."""
    given = pipeline.dead_letters
    if given is None:
        return dead_letters_of(pipeline.name)
    if given.name != "kafka" or not given.model_fields_set <= {"topic"}:
        raise ConfigError(
            f"the dead letters of an import go to a topic, in the same transaction as its records: given "
            f"the sink {given.name!r}; give 'dead_letters' the name of a topic, or leave it out"
        )
    topic: str = given.topic  # type: ignore[attr-defined]
    return topic
