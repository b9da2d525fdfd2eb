r"""Regular expressions that cannot backtrack: those of RE2, as Arrow has it.

Python's own need exponential time for a pattern as `(a+)+b`, and the text may be anyone's.
"""

from __future__ import annotations

import re
from typing import Any

from penstock.flows.expressions.expression_error import ExpressionError
from penstock.pipeline.arrow_regex import arrow_regex

_LONGEST_PATTERN = 1000
# A quotation, an escape, a class of characters, the beginning of a group with or without a name, a sign.
_TOKENS = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?P?<\w+>|\(\?|.",
    re.DOTALL,
)
_GROUP = re.compile(r"\(\?P?<\w+>|\(")


def is_match(text: str, pattern: str) -> bool:
    """Return whether a pattern is found in a text.

    >>> is_match("a" * 100_000, "(a+)+b")
    False
    """
    _require_short(pattern)
    return bool(_called("match_substring_regex", text, pattern=pattern))


def replaced(text: str, pattern: str, by: str) -> str:
    r"""Return a text with every place replaced; `\1` is the first group.

    >>> replaced("2024-05", "([0-9]+)-([0-9]+)", r"\2/\1")
    '05/2024'
    """
    _require_short(pattern)
    return str(_called("replace_substring_regex", text, pattern=pattern, replacement=by))


def extracted(text: str, pattern: str) -> str | None:
    """Return what the first group finds, or the pattern without one; null where nothing is found.

    >>> extracted("id-17", "-([0-9]+)"), extracted("ab", "(a)(b)"), extracted("aa", "(?:a)+")
    ('17', 'a', 'aa')
    """
    _require_short(pattern)
    found = _called("extract_regex", text, pattern=_with_one_group(pattern))
    return None if found is None else str(found["found"])


def _with_one_group(pattern: str) -> str:
    """Return a pattern whose first group has the name `found`, and whose other groups have none.

    Arrow takes groups with names alone. A pattern without a group is one as a whole.
    """
    made: list[str] = []
    has_group = False
    for token in _TOKENS.findall(pattern):
        if _GROUP.fullmatch(token):
            made.append("(?:" if has_group else "(?P<found>")
            has_group = True
        else:
            made.append(token)
    return "".join(made) if has_group else f"(?P<found>{pattern})"


def check_pattern(pattern: str) -> None:
    """Raise where RE2 cannot read a pattern."""
    is_match("", pattern)


def _require_short(pattern: str) -> None:
    if len(pattern) > _LONGEST_PATTERN:
        raise ExpressionError(f"a pattern has at most {_LONGEST_PATTERN} characters")


def _called(name: str, text: str, **options: Any) -> Any:
    try:
        return arrow_regex(name, text, "a regular expression in a flow", **options)
    except ValueError as error:
        raise ExpressionError(
            f"the pattern {options['pattern'][:80]!r} cannot be used: {str(error)[:200]}; it is a "
            "regular expression of RE2, without look-around and back references"
        ) from None
