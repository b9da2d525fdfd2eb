"""What Spark tells when something fails."""

from __future__ import annotations


def told_by_spark(error: BaseException) -> str:
    """Everything that is told of an error, with Java's stack and causes."""
    parts = [error, getattr(error, "_stackTrace", None), getattr(error, "cause", None)]
    return "\n".join(str(part or "") for part in parts)
