r"""Regular expressions that cannot backtrack: those of RE2, as Arrow has it.

Python's own need exponential time for a pattern as `(a+)+b`, and the text may be anyone's.
"""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import missing_extra
from penstock.flows.expressions.expression_error import ExpressionError

_LONGEST_PATTERN = 1000


def is_match(text: str, pattern: str) -> bool:
    """Return whether a pattern is found in a text.

    >>> is_match("a" * 100_000, "(a+)+b")
    False
    """
    return bool(_called("match_substring_regex", text, pattern=pattern))


def replaced(text: str, pattern: str, by: str) -> str:
    r"""Return a text with every place replaced; `\1` is the first group.

    >>> replaced("2024-05", "([0-9]+)-([0-9]+)", r"\2/\1")
    '05/2024'
    """
    return str(_called("replace_substring_regex", text, pattern=pattern, replacement=by))


def extracted(text: str, pattern: str) -> str | None:
    """Return what the first group finds, null where nothing is found."""
    if "(" not in pattern:
        pattern = f"({pattern})"
    named = re.sub(r"(?<!\\)((?:\\\\)*)\((?!\?)", r"\1(?P<found>", pattern, count=1)
    found = _called("extract_regex", text, pattern=named)
    return None if found is None else str(found["found"])


def check_pattern(pattern: str) -> None:
    """Raise where RE2 cannot read a pattern."""
    is_match("", pattern)


def _called(name: str, text: str, **options: Any) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a regular expression in a flow") from missing
    if len(options["pattern"]) > _LONGEST_PATTERN:
        raise ExpressionError(f"a pattern has at most {_LONGEST_PATTERN} characters")
    try:
        return getattr(compute, name)(pa.scalar(text, pa.string()), **options).as_py()
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ExpressionError(
            f"the pattern {options['pattern'][:80]!r} cannot be used: {str(error)[:200]}; it is a "
            "regular expression of RE2, without look-around and back references"
        ) from None
