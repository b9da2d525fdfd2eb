"""Loggers for events with fields, over the standard library's logging; silent without a handler."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast

import structlog

from penstock.config.secrets import mask_event

_pipeline: ContextVar[str] = ContextVar("pipeline", default="")


def event_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose fields become the `extra` of a standard log record."""
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            mask_event,
            structlog.stdlib.render_to_log_kwargs,
        ],
    )
    return cast("structlog.stdlib.BoundLogger", wrapped)


@contextmanager
def logs_of(pipeline: str) -> Iterator[None]:
    """Attribute what this thread logs in the block to a pipeline, also where a line does not name it.

    >>> with logs_of("orders"):
    ...     current_pipeline()
    'orders'
    """
    before = _pipeline.set(pipeline)
    try:
        yield
    finally:
        _pipeline.reset(before)


def current_pipeline() -> str:
    """Return the pipeline that this thread logs for; an empty text if it is not known."""
    return _pipeline.get()
