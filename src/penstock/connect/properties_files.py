"""Java's property files, in which Kafka Connect's workers and connectors are configured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import ConfigError

_LARGEST = 1_000_000
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANK = " \t\f"


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} has {len(data)} bytes; a property file may have {_LARGEST}")
    try:
        return parse_properties(data.decode())
    except UnicodeDecodeError:
        return parse_properties(data.decode("latin-1"))  # what Java wrote before its release 9
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties of a text; where a key is there twice, the last one counts.

    >>> parse_properties("# a comment\\nname = orders\\ntopics: a,\\\\\\n   b\\nempty\\n")
    {'name': 'orders', 'topics': 'a,b', 'empty': ''}
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        found[_plain(key)] = _plain(value)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments; one that ends with a backslash goes on in the next one."""
    pending: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        ends = len(line) - len(line.rstrip("\\"))
        if ends % 2:
            pending = line[:-1]
        else:
            pending = None
            yield line
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Return key and value: the first sign of `=`, `:` or a blank that is not escaped is between them.

    >>> _split("a\\\\=b = c"), _split("key value"), _split("key:=x")
    (('a\\\\=b', 'c'), ('key', 'value'), ('key', '=x'))
    """
    at = 0
    while at < len(line) and line[at] not in f"=:{_BLANK}":
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANK)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _plain(text: str) -> str:
    """Return a text without escapes.

    >>> _plain("a\\\\u00e4\\\\=\\\\tb")
    'aä=\\tb'
    """

    def sign(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _SIGNS.get(match[2], match[2])

    if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", text):
        raise ValueError("a \\u is followed by four hexadecimal digits")
    return _ESCAPE.sub(sign, text)
