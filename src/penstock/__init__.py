"""Penstock: Kafka for Python, with pipelines on Spark.

The public names are listed here and loaded when they are first used, so that `import penstock` is fast
and needs neither Java nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import missing_extra

__version__ = "0.1.0"

_NAMES = {
    "penstock.config": ("Connection", "find_connection"),
    "penstock.embedded": ("Broker", "SchemaRegistry"),
    "penstock.engine": ("Progress", "Running", "State"),
    "penstock.errors": ("PenstockError",),
    "penstock.formats.avro": ("Avro",),
    "penstock.formats.json_schema": ("JsonSchema",),
    "penstock.formats.protobuf": ("Protobuf",),
    "penstock.formats.registry": ("Registry",),
    "penstock.imports": ("start",),
    "penstock.jobs": (
        "Job",
        "Table",
        "cancel",
        "create_job",
        "find_job",
        "job_consumer",
        "job_stats",
        "resume_jobs",
    ),
    "penstock.kafka": ("Admin", "AsyncConsumer", "AsyncProducer", "Consumer", "Producer"),
    "penstock.pipeline": ("Delivery", "Pipeline", "read_pipeline"),
    "penstock.record": ("Record",),
    "penstock.sinks.memory": ("memory_table",),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}
# Names that work without Spark: a missing extra is then their own.
_CLIENT = ("penstock.formats", "penstock.kafka")

__all__ = [*_PLACES, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from penstock.config import Connection as Connection
    from penstock.config import find_connection as find_connection
    from penstock.embedded import Broker as Broker
    from penstock.embedded import SchemaRegistry as SchemaRegistry
    from penstock.engine import Progress as Progress
    from penstock.engine import Running as Running
    from penstock.engine import State as State
    from penstock.errors import PenstockError as PenstockError
    from penstock.formats.avro import Avro as Avro
    from penstock.formats.json_schema import JsonSchema as JsonSchema
    from penstock.formats.protobuf import Protobuf as Protobuf
    from penstock.formats.registry import Registry as Registry
    from penstock.imports import start as start
    from penstock.jobs import Job as Job
    from penstock.jobs import Table as Table
    from penstock.jobs import cancel as cancel
    from penstock.jobs import create_job as create_job
    from penstock.jobs import find_job as find_job
    from penstock.jobs import job_consumer as job_consumer
    from penstock.jobs import job_stats as job_stats
    from penstock.jobs import resume_jobs as resume_jobs
    from penstock.kafka import Admin as Admin
    from penstock.kafka import AsyncConsumer as AsyncConsumer
    from penstock.kafka import AsyncProducer as AsyncProducer
    from penstock.kafka import Consumer as Consumer
    from penstock.kafka import Producer as Producer
    from penstock.pipeline import Delivery as Delivery
    from penstock.pipeline import Pipeline as Pipeline
    from penstock.pipeline import read_pipeline as read_pipeline
    from penstock.record import Record as Record
    from penstock.sinks.memory import memory_table as memory_table


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    try:
        value = getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as missing:
        if _PLACES[name].startswith(_CLIENT):
            raise missing_extra(missing, f"penstock.{name}") from missing
        raise missing_extra(missing, "running a pipeline", "spark") from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES])
