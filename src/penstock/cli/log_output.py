"""Logging of the command line: structlog and the standard library in one stream, on stderr."""

from __future__ import annotations

import logging
import sys
from datetime import datetime, timezone
from pathlib import Path
from traceback import format_exception
from typing import Any, Literal

import structlog

from penstock.config.directories import log_dir
from penstock.config.printable import printable_event, printable_lines
from penstock.config.secrets import mask, mask_event

LogFormat = Literal["text", "json"]

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def set_up(log_format: LogFormat, verbose: int) -> None:
    """Send all logging to stderr in one format, with secrets masked."""
    renderer: Any = structlog.processors.JSONRenderer()
    if log_format == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)
    shared: list[Any] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                mask_event,
                printable_event,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def write_crash(error: BaseException) -> Path:
    """Store the traceback of an unexpected error for the bug report."""
    moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
    path = log_dir() / f"crash-{moment}.log"
    text = mask("".join(format_exception(error)))
    path.write_text(printable_lines(text), encoding="utf-8")
    return path
