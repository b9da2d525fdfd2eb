"""The arguments of a job, as the definition of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from penstock.config import resolve_references
from penstock.control.job_spec import pipeline_name
from penstock.control.stored_functions import without_code
from penstock.errors import ConfigError
from penstock.jobs.job_table import Table
from penstock.kafka import Consumer
from penstock.pipeline import Decode, Delivery
from penstock.pipeline.registry import AnySink, AnySource, component

_SOURCE: TypeAdapter[Any] = TypeAdapter(AnySource)
_SINK: TypeAdapter[Any] = TypeAdapter(AnySink)
# The options of sinks that identify the target of the rows.
_WHERE = ("path", "table", "url", "topic", "warehouse")
Parser = Callable[..., Any] | str | Mapping[str, Any] | Decode | None
_STARTS = {"smallest": "earliest", "earliest": "earliest", "beginning": "earliest",
           "largest": "latest", "latest": "latest", "end": "latest", "error": "committed"}  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """Where a job's records come from, and in which group it reads them."""

    source: dict[str, Any]
    connection: Any = None
    group: str = ""
    # Whether the given consumer commits automatically.
    commits_itself: bool = False
    consumer: Consumer | None = field(default=None, compare=False)

    @property
    def named(self) -> str:
        """Return the default name of the job."""
        topics = ",".join(self.source.get("topics", []))
        return topics or re.sub(r"[/\\]", "-", str(self.source.get("pattern")))


def origin_of(given: Any, connection: Any, group: str | None, start: Any) -> Origin:
    """Return the subscription of a consumer, or the named topics."""
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
    start: Any = _STARTS[str(consumer.setting("auto.offset.reset", "latest"))]
    topics = consumer.subscription
    if not topics and (assigned := consumer.assigned_at):
        topics = sorted({topic for topic, _ in assigned})
        start = {"offsets": _nested(assigned)}
    if not topics:
        raise ConfigError("the consumer reads nothing yet: subscribe it to the job's topics first")
    which: dict[str, Any] = {"topics": topics}
    if any(topic.startswith("^") for topic in topics):
        which = {"pattern": "|".join(topics)}
    return Origin(
        {**which, "start": start},
        consumer.connection,
        str(consumer.setting("group.id", "")),
        commits_itself=bool(consumer.setting("enable.auto.commit")),
        consumer=consumer,
    )


def _nested(assigned: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    offsets: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in assigned.items():
        if offset >= 0:
            offsets.setdefault(topic, {})[str(partition)] = offset
    return offsets


def decode_of(parser: Parser, schema: str | None, table: Table, as_table: bool | str) -> Any:
    """Return the decode: a function, a declared schema, or a decode of a pipeline."""
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


def promised(sink: Any) -> Delivery:
    """Return the strongest delivery of a sink, which is a job's default."""
    chosen: Any = component("sink", next(iter(sink))) if isinstance(sink, Mapping) else sink
    exactly = Delivery.EXACTLY_ONCE in chosen.delivers
    return Delivery.EXACTLY_ONCE if exactly else Delivery.AT_LEAST_ONCE


@dataclass(frozen=True)
class Bounds:
    """The size of a batch, and how long it waits for more records."""

    throttle: float = 1.0
    batch_size: int = 0
    queue_depth: int = 1_000_000

    def for_source(self) -> dict[str, Any]:
        """Return the bounds as options of the source.

        >>> Bounds(0.5, 100).for_source()
        {'max_records_per_batch': 1000000, 'min_records_per_batch': 100, 'max_wait': 0.5}
        """
        if self.queue_depth < 1:
            raise ConfigError(f"queue_depth is {self.queue_depth}; at least one record must fit")
        if self.throttle < 0:
            raise ConfigError(f"throttle is {self.throttle}; it is a number of seconds, 0 or more")
        bounds: dict[str, Any] = {"max_records_per_batch": self.queue_depth}
        if self.batch_size > 1 and self.throttle:
            least = min(self.batch_size, self.queue_depth)
            bounds |= {"min_records_per_batch": least, "max_wait": self.throttle}
        return bounds


@dataclass(frozen=True)
class Description:
    """A job before it is stored: the definition of its pipeline, and its other options."""

    name: str
    definition: dict[str, Any] = field(repr=False)  # it may contain secrets
    options: dict[str, Any]
    consumer: Consumer | None = None
    table: Table | None = None

    @classmethod
    def of_pipeline(cls, definition: Mapping[str, Any]) -> Description:
        """Return the job that runs a given pipeline."""
        options = {
            "as_table": False,
            "batch_size": 0,
            "throttle": 1.0,
            "auto_commit": definition.get("commit", True),
        }
        return cls(str(definition["name"]), dict(definition), options)


def describe(
    source: Any,
    table: Any,
    parser: Parser = None,
    name: str | None = None,
    *,
    bounds: Bounds,
    auto_commit: bool | None = None,
    as_table: bool | str = False,
    connection: Any = None,
    group: str | None = None,
    start: Any = "earliest",
    schema: str | None = None,
    steps: Sequence[Any] = (),
    delivery: str | None = None,
    **more: Any,
) -> Description:
    """Return the description of a job from the arguments of `create_job`."""
    origin = origin_of(source, connection, group, start)
    chosen = name or origin.named
    place = Table.of(table)
    sink = place.definition(pipeline_name(chosen))
    commits = auto_commit if auto_commit is not None else not origin.commits_itself
    definition = {
        "name": pipeline_name(chosen),
        **({"connection": origin.connection} if origin.connection is not None else {}),
        "group": origin.group,
        "commit": commits or origin.commits_itself,
        "source": {"kafka": origin.source | bounds.for_source()},
        "decode": decode_of(parser, schema, place, as_table),
        "steps": list(steps),
        "sink": sink,
        "delivery": str(delivery or promised(sink).value),
        **more,
    }
    options = {
        "as_table": as_table,
        "batch_size": bounds.batch_size,
        "throttle": bounds.throttle,
        "auto_commit": commits,
    }
    return Description(chosen, definition, options, origin.consumer, place)


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two definitions read the same topics into the same table.

    >>> same_place(
    ...     {"source": {"kafka": "t"}, "sink": {"delta": "lake"}},
    ...     {"source": {"kafka": {"topics": ["t"]}}, "sink": {"delta": {"path": "lake"}}},
    ... )
    True
    """
    return _place(one) == _place(other)


def _place(definition: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return source and target in a comparable form, without loading code."""
    source, sink = (
        adapter.validate_python(resolve_references(without_code(definition[part])))
        for part, adapter in (("source", _SOURCE), ("sink", _SINK))
    )
    where = {name: getattr(sink, name, None) for name in _WHERE}
    return sorted(source.topics), source.pattern, sink.name, where
