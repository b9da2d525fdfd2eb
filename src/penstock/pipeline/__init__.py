"""The definition of a pipeline: models, the registry of components, reading and checking."""

from penstock.pipeline.batch import (
    CLAIMED,
    EVERY_DELIVERY,
    Batch,
    Delivery,
    LastWrite,
    Mark,
    Ranges,
    is_repetition,
    refuse_claim,
    renumbered,
)
from penstock.pipeline.component import (
    FAILED,
    ORIGIN,
    BoundStep,
    Component,
    Decode,
    Reading,
    Sink,
    Source,
    Step,
)
from penstock.pipeline.definition import Pipeline, SparkOptions
from penstock.pipeline.reading import parse_pipeline, read_pipeline
from penstock.pipeline.source_log import Offsets, Partition, SourceLog
from penstock.pipeline.writer import Opening, RefusedRow, Writer

__all__ = [
    "CLAIMED",
    "EVERY_DELIVERY",
    "FAILED",
    "ORIGIN",
    "Batch",
    "BoundStep",
    "Component",
    "Decode",
    "Delivery",
    "LastWrite",
    "Mark",
    "Offsets",
    "Opening",
    "Partition",
    "Pipeline",
    "Ranges",
    "Reading",
    "RefusedRow",
    "Sink",
    "Source",
    "SourceLog",
    "SparkOptions",
    "Step",
    "Writer",
    "is_repetition",
    "parse_pipeline",
    "read_pipeline",
    "refuse_claim",
    "renumbered",
]
