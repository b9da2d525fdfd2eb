"""The codes of errors in messages, in one table: docs/flows.md is checked against it.

Whatever a step raises becomes one of them, so that definitions can name what they catch.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.config.secrets import mask
from penstock.errors import (
    BrokerUnavailableError,
    ConfigError,
    PenstockError,
    RecordError,
    TerminalError,
    TransientError,
)
from penstock.flows.expressions import ExpressionError

_LONGEST = 2000


class ErrorCode(NamedTuple):
    """A code, what it means, and whether a retry may help."""

    code: str
    meaning: str
    passes: bool = False


CODES = (
    ErrorCode("CORE:RUNTIME", "a step failed in another way; the description has the reason"),
    ErrorCode("CORE:TIMEOUT", "a step, a request or a query took longer than its time-out", True),
    ErrorCode(
        "CORE:EXPRESSION", "an expression has no value for this message, as in a division by zero"
    ),
    ErrorCode("CORE:VALIDATION", "the payload does not fit the JSON Schema of a step `validate`"),
    ErrorCode("CORE:PYTHON", "the function of a step `python` raised an exception"),
    ErrorCode("CORE:LOOKUP", "a step `lookup` with `missing: fail` found nothing"),
    ErrorCode("CORE:SPLIT", "what a step `split` is given is not a list, or has too many elements"),
    ErrorCode(
        "CORE:JOIN", "a step `join` with `incomplete: fail` has a group that is not complete"
    ),
    ErrorCode("CORE:UNAVAILABLE", "another system is unavailable", True),
    ErrorCode("KAFKA:UNAVAILABLE", "no broker took the record in time", True),
    ErrorCode("KAFKA:REFUSED", "Kafka refused the record: its size, its topic, the user's rights"),
    ErrorCode("RABBITMQ:UNAVAILABLE", "RabbitMQ cannot be reached, or does not confirm", True),
    ErrorCode("RABBITMQ:REFUSED", "RabbitMQ refused the message, or no queue gets it"),
    ErrorCode("JMS:UNAVAILABLE", "the JMS broker cannot be reached, or does not confirm", True),
    ErrorCode("JMS:REFUSED", "the JMS broker refused the message"),
    ErrorCode("DATABASE:UNAVAILABLE", "the database cannot be reached", True),
    ErrorCode("DATABASE:REFUSED", "the database refused the statement"),
    ErrorCode("HTTP:UNAVAILABLE", "the server cannot be reached", True),
    ErrorCode("HTTP:REFUSED", "the reply cannot be used: too large, not what `result` says"),
    ErrorCode("HTTP:nnn", "the server replied with this status, as in `HTTP:404`"),
)
_PASSING_STATUSES = frozenset({408, 425, 429})
_HTTP_STATUS = re.compile(r"HTTP:[1-5][0-9]{2}")


def is_known(code: str) -> bool:
    """Return whether a code is in the table.

    >>> is_known("CORE:RUNTIME"), is_known("HTTP:404"), is_known("HTTP:nnn"), is_known("CORE:x")
    (True, True, False, False)
    """
    if _HTTP_STATUS.fullmatch(code):
        return True
    return code != "HTTP:nnn" and any(code == each.code for each in CODES)


def may_pass(code: str) -> bool:
    """Return whether the same step may work later.

    >>> may_pass("HTTP:503"), may_pass("HTTP:404"), may_pass("CORE:TIMEOUT")
    (True, False, True)
    """
    if _HTTP_STATUS.fullmatch(code):
        status = int(code[5:])
        return status >= 500 or status in _PASSING_STATUSES
    return any(each.passes for each in CODES if each.code == code)


def is_pattern(given: str) -> bool:
    """Return whether a text names codes: one of them, or the beginning of some with `*`.

    >>> is_pattern("HTTP:*"), is_pattern("HTTP:5*"), is_pattern("*"), is_pattern("HTPP:*")
    (True, True, True, False)
    """
    if not given.endswith("*"):
        return is_known(given)
    start = given[:-1]
    statuses = [f"HTTP:{status}" for status in range(100, 600)]
    return any(code.startswith(start) for code in [*(each.code for each in CODES), *statuses])


def names_code(pattern: str, code: str) -> bool:
    """Return whether a pattern names a code."""
    return code.startswith(pattern[:-1]) if pattern.endswith("*") else code == pattern


class Fault(Exception):  # noqa: N818 - it is a part of a message
    """A step that failed for a message: the error that the message gets.

    >>> Fault("HTTP:503", "busy", retry_after=2.0).document
    {'Code': 'HTTP:503', 'Description': 'busy'}
    """

    def __init__(self, code: str, description: str, retry_after: float = 0.0) -> None:
        self.code = code
        self.description = mask(description)[:_LONGEST]
        self.retry_after = retry_after
        super().__init__(f"{code}: {self.description}")

    @property
    def document(self) -> dict[str, str]:
        """Return the error as a message has it."""
        return {"Code": self.code, "Description": self.description}


def fault_of(error: Exception, system: str = "") -> Fault:  # noqa: PLR0911 - a table
    """Return the fault for an exception; `system` is the part of the code before the colon.

    >>> fault_of(ZeroDivisionError("x")).document
    {'Code': 'CORE:RUNTIME', 'Description': 'ZeroDivisionError: x'}
    >>> fault_of(TransientError("away"), "RABBITMQ").code
    'RABBITMQ:UNAVAILABLE'
    """
    if isinstance(error, Fault):
        return error
    if isinstance(error, ExpressionError):
        return Fault("CORE:EXPRESSION", str(error))
    if isinstance(error, BrokerUnavailableError):
        return Fault("KAFKA:UNAVAILABLE", str(error), error.retry_after)
    if isinstance(error, TransientError):
        return Fault(f"{system or 'CORE'}:UNAVAILABLE", str(error), error.retry_after)
    if system and isinstance(error, RecordError | ConfigError | TerminalError):
        return Fault(f"{system}:REFUSED", str(error))
    if isinstance(error, TimeoutError):
        return Fault("CORE:TIMEOUT", str(error))
    named = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
    return Fault("CORE:RUNTIME", named)
