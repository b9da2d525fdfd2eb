"""The definition of a pipeline: models, the registry of components, reading and checking."""

from penstock.pipeline.component import (
    EVERY_DELIVERY,
    FAILED,
    ORIGIN,
    Batch,
    Component,
    Decode,
    Delivery,
    Mark,
    Offsets,
    Opening,
    Partition,
    Reading,
    Sink,
    Source,
    Step,
)
from penstock.pipeline.definition import Pipeline, SparkOptions
from penstock.pipeline.reading import parse_pipeline, read_pipeline

__all__ = [
    "EVERY_DELIVERY",
    "FAILED",
    "ORIGIN",
    "Batch",
    "Component",
    "Decode",
    "Delivery",
    "Mark",
    "Offsets",
    "Opening",
    "Partition",
    "Pipeline",
    "Reading",
    "Sink",
    "Source",
    "SparkOptions",
    "Step",
    "parse_pipeline",
    "read_pipeline",
]
