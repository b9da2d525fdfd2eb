"""What a person says about a job, as the definition of a pipeline."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.config import resolve_references
from penstock.errors import ConfigError
from penstock.jobs.keeping import restored
from penstock.jobs.table import Table
from penstock.kafka import Consumer
from penstock.pipeline import Decode, Delivery, Pipeline
from penstock.pipeline.registry import component

Parser = Callable[..., Any] | str | Mapping[str, Any] | Decode | None
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STARTS = {"smallest": "earliest", "earliest": "earliest", "beginning": "earliest",
           "largest": "latest", "latest": "latest", "end": "latest", "error": "committed"}  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """Where a job's records come from, and in which group it reads them."""

    source: dict[str, Any]
    connection: Any = None
    group: str = ""
    # Whether the consumer that was given commits by itself, by the clock.
    commits_itself: bool = False
    consumer: Consumer | None = field(default=None, compare=False)

    @property
    def named(self) -> str:
        """What the job is called when nobody says."""
        return ",".join(self.source.get("topics", [])) or str(self.source.get("pattern"))


def origin_of(given: Any, connection: Any, group: str | None, start: Any) -> Origin:
    """Return what a consumer reads, or the topics that were named."""
    if isinstance(given, Consumer):
        return _of_consumer(given, connection, group)
    if isinstance(given, re.Pattern):
        which: dict[str, Any] = {"pattern": given.pattern}
    elif isinstance(given, str):
        which = {"topics": [name.strip() for name in given.split(",")]}
    elif isinstance(given, Iterable):
        which = {"topics": list(given)}
    else:
        raise ConfigError(
            "a job reads a topic, a list of topics, a compiled pattern or what a Consumer has "
            f"subscribed to; {type(given).__name__} was given"
        )
    return Origin({**which, "start": start}, connection, group or "")


def _of_consumer(consumer: Consumer, connection: Any, group: str | None) -> Origin:
    if connection is not None or group is not None:
        raise ConfigError("the consumer has its own connection and group: give the consumer alone")
    settings = consumer.connection.to_config()
    start: Any = _STARTS[str(settings.get("auto.offset.reset", "latest"))]
    topics = consumer.subscription
    if not topics and (assigned := consumer.assigned_at):
        topics = sorted({topic for topic, _ in assigned})
        start = {"offsets": _nested(assigned)}
    if not topics:
        raise ConfigError("the consumer reads nothing yet: subscribe it to the job's topics first")
    which: dict[str, Any] = {"topics": topics}
    if any(topic.startswith("^") for topic in topics):
        which = {"pattern": "|".join(topics)}
    commits = str(settings.get("enable.auto.commit", True)).lower() == "true"
    return Origin(
        {**which, "start": start},
        consumer.connection,
        consumer.connection.group_id or "",
        commits_itself=commits,
        consumer=consumer,
    )


def _nested(assigned: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in assigned.items():
        if offset >= 0:
            found.setdefault(topic, {})[str(partition)] = offset
    return found


def decode_of(parser: Parser, schema: str | None, table: Table, as_table: bool | str) -> Any:
    """Return the decode: a function, a declared schema, or a decode as a pipeline has it."""
    if isinstance(parser, (Decode, Mapping)):
        return parser
    if parser is None or (isinstance(parser, str) and ":" not in parser.partition(" ")[0]):
        declared = parser or schema or table.columns
        if declared is None:
            raise ConfigError(
                "neither a parser nor columns were given: give a function, or the columns of the JSON, "
                "as in 'symbol string, price double'"
            )
        return {"json": {"schema": declared}}
    columns = schema or table.columns
    if columns is None:
        raise ConfigError(
            "which columns does the parser return? Give schema='symbol string, price double', or a "
            "penstock.Table with columns"
        )
    tables = {"tables": "pandas" if as_table is True else as_table} if as_table else {}
    return {"python": {"function": parser, "schema": columns, **tables}}


def pipeline_name(job: str) -> str:
    """Return the name of a job's pipeline: the job's own, where a pipeline may have it.

    >>> pipeline_name("trades"), pipeline_name("test:0:get data")
    ('trades', 'test-0-get-data-0ae8a7')
    """
    if _NAME.fullmatch(job):
        return job
    digest = hashlib.sha256(job.encode()).hexdigest()[:6]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", job).strip("-.")[:80]
    return f"{plain or 'job'}-{digest}"


def promised(sink: Any) -> Delivery:
    """Return the most that a sink can promise, which is what a job promises when nobody says."""
    chosen: Any = component("sink", next(iter(sink))) if isinstance(sink, Mapping) else sink
    exactly = Delivery.EXACTLY_ONCE in chosen.delivers
    return Delivery.EXACTLY_ONCE if exactly else Delivery.AT_LEAST_ONCE


def batching(batch_size: int, throttle: float, queue_depth: int) -> dict[str, Any]:
    """Return the bounds of a hand-over, as the source has them."""
    if queue_depth < 1:
        raise ConfigError(f"queue_depth is {queue_depth}; at least one record must fit")
    if throttle < 0:
        raise ConfigError(f"throttle is {throttle}; it is a number of seconds, 0 or more")
    bounds: dict[str, Any] = {"max_records_per_batch": queue_depth}
    if batch_size > 1 and throttle:
        bounds |= {"min_records_per_batch": min(batch_size, queue_depth), "max_wait": throttle}
    return bounds


def pipeline_of(definition: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline of a definition that was kept."""
    filled = {
        name: part if name == "connection" else resolve_references(restored(part))
        for name, part in definition.items()
    }
    return Pipeline(**filled)


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two definitions read the same topics into the same table."""

    def place(definition: Mapping[str, Any]) -> tuple[Any, ...]:
        source = definition["source"]["kafka"]
        topics: Sequence[str] = source.get("topics", ())
        ((kind, options),) = definition["sink"].items()
        where = {
            name: value
            for name, value in (options if isinstance(options, Mapping) else {"": options}).items()
            if name in ("", "path", "table", "url", "topic", "warehouse")
        }
        return sorted(topics), source.get("pattern"), kind, where

    return place(one) == place(other)
