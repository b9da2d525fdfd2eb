"""A record of the standard logging as a line of the store: masked, short, and safe to show."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from penstock.config.log_fields import log_field
from penstock.config.secrets import MASK, is_secret_key, mask
from penstock.control.store.logs import LEVELS, LogLine

LONGEST_EVENT, LONGEST_FIELDS = 2000, 6000
"""How many characters of a line are stored: of its event, and of all its fields as JSON."""
_LONGEST_VALUE = 4000
_LONGEST_NAME = 200
_MOST_ITEMS, _DEEPEST = 50, 4
_GREATEST = 2**63
_CUT = "..."
_OF_RECORDS = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
# What structlog adds for its own renderers.
_OF_STRUCTLOG = {"event", "level", "timestamp", "logger", "_logger", "_name", "_record", "exc_info"}
# The threads of a run that are named after it.
_THREAD = re.compile(r"run-(.+)|(.+)-(?:supervisor|lease|import)", re.DOTALL)


def line_of(record: logging.LogRecord) -> LogLine:
    """Return the line of a record.

    >>> record = logging.makeLogRecord({"msg": "run_begins", "levelno": 20, "deployment": "orders"})
    >>> record.password = "hunter2"
    >>> line_of(record)
    LogLine(deployment='orders', level='info', event='run_begins', fields={'password': '********'}, ...
    """
    event, fields = _parts(record)
    owner = _owner(fields, record)
    for name in ("deployment", "pipeline"):
        if fields.get(name) == owner:
            del fields[name]
    logger = record.name or "root"
    if logger != "root" and logger.partition(".")[0] != "penstock":
        fields.setdefault("logger", logger)
    if exception := _exception(record):
        fields = {"exception": exception, **fields}
    return LogLine(owner, level_of(record.levelno), _text(event, LONGEST_EVENT), _bounded(fields))


def level_of(number: int) -> str:
    """Return the name of a level.

    >>> level_of(logging.WARNING), level_of(5), level_of(99)
    ('warning', 'debug', 'critical')
    """
    return LEVELS[min(max(number // 10 - 1, 0), len(LEVELS) - 1)]


def _parts(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Return the event and the fields: those of `extra`, or the event of a logger of structlog."""
    extra = {name: value for name, value in vars(record).items() if name not in _OF_RECORDS}
    given: Any = record.msg
    if isinstance(given, dict):
        extra = {**extra, **given}
        event = str(given.get("event", ""))
    else:
        event = record.getMessage()
    return event, {name: extra[name] for name in extra if name not in _OF_STRUCTLOG}


def _owner(fields: Mapping[str, Any], record: logging.LogRecord) -> str:
    named = _THREAD.fullmatch(record.threadName or "")
    thread = (named[1] or named[2]) if named else ""
    candidates = (fields.get("deployment"), log_field("pipeline"), thread, fields.get("pipeline"))
    for each in candidates:
        if each and isinstance(each, str) and each.isprintable() and len(each) <= _LONGEST_NAME:
            return each
    return ""


def _exception(record: logging.LogRecord) -> str:
    """Return a traceback; of a long one the end, which has the error."""
    text = record.exc_text or ""
    if not text and isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        text = logging.Formatter().formatException(record.exc_info)
    text = _clean(mask(text))
    return text if len(text) <= _LONGEST_VALUE else _CUT + text[len(_CUT) - _LONGEST_VALUE :]


def _bounded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as values of JSON that are not too long together; each has at least its name."""
    room = LONGEST_FIELDS
    found: dict[str, Any] = {}
    for name, value in islice(fields.items(), _MOST_ITEMS):
        shown = _plain(name, value)
        size = len(json.dumps(shown))
        if size > room:
            shown = _CUT
        room -= min(size, room)
        found[_text(name, 100)] = shown
    return found


def _plain(name: Any, value: Any, depth: int = 0) -> Any:
    """Return a value as JSON has it, whatever it is; secrets are masked."""
    if isinstance(name, str) and is_secret_key(name) and value is not None:
        return MASK
    if _is_plain(value):
        return value
    if isinstance(value, Mapping) and depth < _DEEPEST:
        items = islice(value.items(), _MOST_ITEMS)
        return {_text(_shown(key), 100): _plain(key, each, depth + 1) for key, each in items}
    if isinstance(value, (list, tuple, set, frozenset)) and depth < _DEEPEST:
        return _items(value, depth)
    return _text(_shown(value), _LONGEST_VALUE)


def _is_plain(value: Any) -> bool:
    """Return whether a value is one of JSON that every reader has."""
    if value is None or isinstance(value, bool):
        return True
    if type(value) is int:
        return abs(value) < _GREATEST
    return type(value) is float and math.isfinite(value)


def _items(values: Iterable[Any], depth: int) -> list[Any]:
    return [_plain(None, each, depth + 1) for each in islice(values, _MOST_ITEMS)]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value) if isinstance(value, (BaseException, int, float)) else repr(value)
    except Exception:  # of a type that is not ours
        return f"<{type(value).__name__} that cannot be shown>"


def _text(text: str, most: int) -> str:
    """Return the beginning of a text without secrets: masked first, so that none is cut in two."""
    shown = _clean(mask(text))
    return shown if len(shown) <= most else shown[:most] + _CUT


def _clean(text: str) -> str:
    """Return a text that every database and JSON can have."""
    return text.replace("\x00", "\\u0000").encode("utf-8", "backslashreplace").decode()
