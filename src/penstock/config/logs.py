"""Loggers for events with fields, over the standard library's logging; silent without a handler."""

from __future__ import annotations

import logging
from typing import cast

import structlog

from penstock.config.log_fields import add_log_fields
from penstock.config.secrets import mask_event


def event_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose fields become the `extra` of a standard log record."""
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            add_log_fields,
            mask_event,
            structlog.stdlib.render_to_log_kwargs,
        ],
    )
    return cast("structlog.stdlib.BoundLogger", wrapped)
