"""The one error of expressions: what is wrong with the text, or with the values of one message."""

from __future__ import annotations

from penstock.errors import RecordError


class ExpressionError(RecordError, ValueError):
    """An expression that cannot be read, or that has no value for this message."""
