"""Says in one sentence why a pipeline failed; Spark's own account is a page of Java and Python."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.errors import PySparkException

from penstock.config.secrets import mask
from penstock.errors import PenstockError, PipelineFailedError

_PYTHON_ERROR = re.compile(r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt)\b.*)$", re.M)
_JAVA_CAUSE = re.compile(r"^Caused by: ([\w.$]+): (.*)$", re.M)


def failure(error: BaseException, pipeline: str, log: Path | None) -> PenstockError:
    """Return what went wrong as an error for people, with the file that has the whole story."""
    if isinstance(error, PenstockError):
        return error
    where = f"; the whole story is in {log}" if log else ""
    return PipelineFailedError(mask(f"pipeline {pipeline!r} failed: {reason(error)}{where}"))


def reason(error: BaseException) -> str:
    """Return the innermost reason that a person can act on."""
    text = str(error)
    if isinstance(error, PySparkException):
        if found := _PYTHON_ERROR.findall(text):
            return str(found[-1]).strip()
        if causes := _JAVA_CAUSE.findall(text):
            kind, message = causes[-1]
            return f"{kind.rpartition('.')[2]}: {message}"
    first = text.strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
