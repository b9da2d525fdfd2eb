"""Fields that all events of a block have: which pipeline and batch they are about.

A worker runs deployments, which have the names of their pipelines: inside of `deployments_named` events
have the field `deployment`, too, by which logs of a worker are searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_fields: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default={})  # noqa: B039
_workers = 0


@contextmanager
def log_fields(**fields: Any) -> Iterator[None]:
    """Add fields to what this thread logs in the block; an event's own fields come first.

    >>> with log_fields(batch=7, part=1):
    ...     add_log_fields(None, "info", {"event": "records_lost", "part": 2})
    {'event': 'records_lost', 'part': 2, 'batch': 7}
    """
    before = _fields.set({**_fields.get(), **fields})
    try:
        yield
    finally:
        _fields.reset(before)


def log_field(name: str) -> Any:
    """Return a field that what this thread logs has; None outside of a block with it."""
    return _fields.get().get(name)


@contextmanager
def deployments_named() -> Iterator[None]:
    """Add the field `deployment` to events of this process that have a pipeline, in the block.

    >>> with deployments_named():
    ...     add_log_fields(None, "info", {"event": "epoch_began", "pipeline": "orders"})
    {'event': 'epoch_began', 'pipeline': 'orders', 'deployment': 'orders'}
    """
    global _workers  # noqa: PLW0603
    _workers += 1
    try:
        yield
    finally:
        _workers -= 1


def add_log_fields(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add the fields of the block to an event: a processor of structlog.

    The deployment is the pipeline of the block: an event in it may be about another one, as that of
    its dead letters.
    """
    fields = _fields.get()
    for name, value in fields.items():
        event.setdefault(name, value)
    if _workers and "pipeline" in event:
        event.setdefault("deployment", fields.get("pipeline", event["pipeline"]))
    return event
