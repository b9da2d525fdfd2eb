"""Patterns of Java's SimpleDateFormat, split into fields and texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import ConfigError

LETTERS = "GyYMLwWDdFEuaHkKhmsSzZX"
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMERIC = "yYwWDdFuHkKhmsS"
_TOKEN = re.compile(
    r"(?P<letter>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<text>[^A-Za-z']+)", re.S
)


@dataclass(frozen=True)
class Token:
    """A field (a letter and how often it is repeated), or a text (no letter)."""

    letter: str
    count: int = 0
    text: str = ""

    @property
    def is_number(self) -> bool:
        """Return whether the field is written as a number."""
        if self.letter in ("M", "L"):
            return self.count <= 2
        return bool(self.letter) and self.letter in _NUMERIC


def tokens(pattern: str) -> list[Token]:
    """Split a pattern; raise ConfigError where Java would refuse it.

    >>> [(token.letter * token.count or token.text) for token in tokens("yyyy-MM-dd'T'HH")]
    ['yyyy', '-', 'MM', '-', 'dd', 'T', 'HH']
    """
    found: list[Token] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise ConfigError(f"the pattern {pattern!r} has a quote that does not end: add a '")
        at = match.end()
        found.append(_token(match, pattern))
    return found


def _token(match: re.Match[str], pattern: str) -> Token:
    if run := match["letter"]:
        if run[0] not in LETTERS or (run[0] == "X" and len(run) > 3):
            raise ConfigError(
                f"the pattern {pattern!r} has {run!r}; letters outside of quotes are those of Java's "
                f"SimpleDateFormat: {LETTERS}, with at most three X"
            )
        return Token(run[0], len(run))
    if match["quoted"] is not None:
        return Token("", text=match["quoted"].replace("''", "'") or "'")
    return Token("", text=match["text"])
