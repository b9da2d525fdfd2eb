"""The topics of a sink connector: as in Connect, one that does not exist yet is no reason to fail."""

from __future__ import annotations

from penstock.config.logs import event_logger
from penstock.errors import PenstockError
from penstock.imports.positions import ensure_topic
from penstock.kafka import Admin
from penstock.pipeline import Pipeline
from penstock.pipeline.importing import Import

log = event_logger(__name__)


def create_missing_topics(pipeline: Pipeline) -> None:
    """Create the topics that a connector reads by name, with the broker's defaults."""
    if isinstance(pipeline.source, Import):
        return
    names = pipeline.source.named_topics()
    try:
        with Admin(pipeline.find_connection()) as admin:
            for name in names:
                ensure_topic(admin, name, None, {})
    except PenstockError as error:  # the start itself reports what is missing
        log.warning("topics_not_created", topics=", ".join(names), reason=str(error))
