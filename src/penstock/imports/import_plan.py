"""What a definition with an import means: the import alone, or an import and the pipeline behind it."""

from __future__ import annotations

from dataclasses import dataclass

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

    def topic_config(self, topic: str) -> dict[str, object]:
        """Return the settings of a topic that has to be created: Penstock deletes from its own itself."""
        return {"retention.ms": -1} if topic == self.own_topic else {}


def import_plan(pipeline: Pipeline) -> ImportPlan | None:
    """Return what to run for a definition; None for one that reads Kafka."""
    whole = pipeline.imported()
    if not isinstance(whole.source, Import):
        return None
    topic = getattr(whole.dead_letters, "topic", None) or dead_letters_of(whole.name)
    return ImportPlan(whole.source, None if whole.only_imports else whole, topic)
