"""The words of an expression. One regular expression without nested repetition: linear in the text."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from penstock.flows.expressions.expression_error import ExpressionError

LONGEST = 100_000
_LONGEST_NUMBER = 100
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_]\w*|\$)
    |(?P<single>'[^']*(?:''[^']*)*')
    |(?P<double>"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<op>\|\||<>|!=|<=|>=|==|[=<>+\-*/%()\[\]{},:.])""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(
    {
        *("and", "or", "not", "in", "like", "between", "is", "null", "true", "false"),
        *("case", "when", "then", "else", "end"),
    }
)


class Token(NamedTuple):
    """A word, its kind (`number`, `name`, `text`, `op`, `word` or `end`) and where it begins."""

    kind: str
    text: str
    at: int
    value: object = None


def tokens(text: str) -> list[Token]:
    """Return the words of an expression; the last one is `end`.

    >>> [token.text for token in tokens("payload.a >= 1.5 AND 'it''s'")][:6]
    ['payload', '.', 'a', '>=', '1.5', 'and']
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"has {len(text)} characters; allowed are {LONGEST}")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(_unreadable(text, at))
        if match.lastgroup != "space":
            found.append(_token(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*found, Token("end", "the end", len(text))]


def _token(kind: str, text: str, at: int) -> Token:
    if kind == "number":
        return Token(kind, text, at, _number(text, at))
    if kind == "single":
        return Token("text", text, at, text[1:-1].replace("''", "'"))
    if kind == "double":
        return Token("text", text, at, _unescaped(text, at))
    if kind == "name" and text.lower() in _KEYWORDS:
        return Token("word", text.lower(), at, text)
    return Token(kind, text, at)


def _number(text: str, at: int) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise ExpressionError(f"column {at + 1}: a number has at most {_LONGEST_NUMBER} digits")
    if text.isdigit():
        return int(text)
    value = float(text)
    if value == float("inf"):
        raise ExpressionError(f"column {at + 1}: the number {text} is too large")
    return value


def _unescaped(text: str, at: int) -> str:
    try:
        value: str = json.loads(text, strict=False)
    except ValueError:
        raise ExpressionError(
            f"column {at + 1}: {text[:40]} has an escape that JSON does not have; write a backslash as "
            "two, or use single quotes"
        ) from None
    return value


def _unreadable(text: str, at: int) -> str:
    if text[at] in "'\"":
        return f"column {at + 1}: the text that begins here has no end; close it with {text[at]}"
    hint = {"&": "write 'and'", "|": "write 'or', or || to join texts", "!": "write 'not'"}
    advice = hint.get(text[at], "put texts in quotes")
    return f"column {at + 1}: {text[at]!r} cannot be part of an expression; {advice}"
