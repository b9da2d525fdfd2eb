"""Detection of secrets in free text by their patterns. Each pass is linear in the length of the text.

A name followed by a separator is looked up in `secret_names`; what follows is its value. A pattern may
begin only where the one before it cannot go on, so that no attempt reads what another has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.config.secret_names import HINTS, is_secret_key

MASK = "********"

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_NAMED = re.compile(
    r"""(?<![\w.\-])(?P<name>[\w.\-]+)(?P<quote>\\*["'`])?\]?"""
    r"""(?P<between>[ \t]*(?:=>|->|:=|[=:])[ \t]*|[ \t]+(?=["']))"""
)
_OPTION = re.compile(r"(?<!\S)--?(?P<name>[a-zA-Z][\w.\-]*)[ \t]+(?=[^\s\-])")
_OPENING = re.compile(r"""[bBrRuU]{0,2}(?P<escapes>\\*)(?P<quote>["'])""")
_QUOTES = {quote: re.compile(rf"(?<!\\)(\\*){quote}") for quote in "\"'"}
_LINE_REST = re.compile(r"[^\r\n]*")
_WORD = re.compile(r"\S+")
_HINTS = (*HINTS, "sig=")
_QUERY_WORD = re.compile(r"[^\s&#]*")
_CREDENTIAL = re.compile(r"(?:(?:basic|bearer|digest|negotiate)[ \t]+)?[^\s\"']*", re.IGNORECASE)
_BEARER = re.compile(r"(?<![\w\-])(bearer[ \t]+)[\w.~+/=\-]{8,}", re.IGNORECASE)
_JWT = re.compile(r"(?<![\w\-])eyJ[\w\-]+\.[\w\-]+\.[\w\-]*")
_SPACE = re.compile(r"\s|\Z")
_PORT = re.compile(r"\d{1,5}(?![^/?#\s\"'),;\]}])")
# Ordinary words of messages, as in "unexpected token: ;". As names they are quoted, or have a `=`.

_ABOUT = "for configuration "
_ORDINARY = frozenset({"token", "tokens", "credential", "credentials", "secrets", "signature"})


def without_secrets(text: str) -> str:
    """Return the text with everything masked that looks like a secret."""
    text = _PEM.sub(MASK, text)
    if "eyJ" in text:
        text = _JWT.sub(MASK, text)
    lower = text.lower()
    if any(hint in lower for hint in _HINTS):
        text = _cut(text, _assigned(text))
    if "bearer" in lower:
        text = _BEARER.sub(lambda match: match[1] + MASK, text)
    return _cut(text, _user_info(text)) if "://" in text else text


def _cut(text: str, spans: Iterator[tuple[int, int]]) -> str:
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], MASK]
        done = end
    return "".join([*parts, text[done:]])


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values are that follow the name of a secret."""
    done = 0
    options = [match for match in _OPTION.finditer(text) if is_secret_key(match["name"])]
    names = [match for match in _NAMED.finditer(text) if _is_name(text, match)]
    for match in sorted([*options, *names], key=lambda match: match.end()):
        if match.start() >= done and (end := _end_of_value(text, match)) > match.end():
            yield match.end(), end
            done = end


def _is_name(text: str, match: re.Match[str]) -> bool:
    name = match["name"]
    if name.lower() == "sig":
        return text[match.start() - 1 : match.start()] in ("?", "&")
    # What Kafka says of the value of a key comes after its name; the value itself is before it.
    if not is_secret_key(name) or text.endswith(_ABOUT, 0, match.start()):
        return False
    return name.lower() not in _ORDINARY or bool(match["quote"]) or "=" in match["between"]


def _end_of_value(text: str, match: re.Match[str]) -> int:
    start = match.end()
    if opening := _OPENING.match(text, start):
        return _end_of_quoted(text, opening)
    if text[start : start + 1] in ("[", "(", "{"):
        return _LINE_REST.match(text, start).end()  # type: ignore[union-attr]
    value = _WORD
    if text[match.start() - 1 : match.start()] in ("?", "&"):
        value = _QUERY_WORD
    elif match["name"].lower().endswith("authorization"):
        value = _CREDENTIAL
    matched = value.match(text, start)
    return matched.end() if matched else start


def _end_of_quoted(text: str, opening: re.Match[str]) -> int:
    r"""Return the end of a quoted text that may be inside other quoted texts, as JAAS in JSON.

    Inside d quoted texts a quote has 2**d - 1 backslashes before it, and one that belongs to the value
    has more. A value without an end hides the rest of its line.
    """
    level = len(opening["escapes"])
    if (level + 1) & level or level > 7:
        return _LINE_REST.match(text, opening.end()).end()  # type: ignore[union-attr]
    for quote in _QUOTES[opening["quote"]].finditer(text, opening.end()):
        if len(quote[1]) % (2 * (level + 1)) == level:
            return quote.end()
    return _LINE_REST.match(text, opening.end()).end()  # type: ignore[union-attr]


def _user_info(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the passwords of addresses are: after the first colon, before the last @."""
    at, blank = text.find("://"), -1
    while at >= 0:
        start = at + 3
        if blank < start:
            match = _SPACE.search(text, start)
            blank = match.start() if match else len(text)
        after = text.find("://", start, blank)
        yield from _password(text, start, after if after >= 0 else blank)
        at = after if after >= 0 else text.find("://", blank)


def _password(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    colon, sign = text.find(":", start, end), text.rfind("@", start, end)
    if not start <= colon < sign:
        return
    if any(text.find(end_of_host, start, colon) >= 0 for end_of_host in "/?#"):
        return  # the address has ended before this colon, which is in its path
    if not _PORT.match(text, colon + 1, end) or "/" not in text[colon:sign]:
        yield colon + 1, sign
