"""Loggers for events with fields, over the standard library's logging: quiet until somebody listens."""

from __future__ import annotations

import logging
from typing import cast

import structlog


def event_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose fields become the `extra` of a standard log record.

    >>> event_logger("penstock.example").info("batch_done", rows=3)
    """
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    )
    return cast("structlog.stdlib.BoundLogger", wrapped)
