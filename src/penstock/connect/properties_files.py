"""Java's property files, in which Kafka Connect's workers and connectors are configured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import ConfigError

_LARGEST = 1_000_000
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANK = " \t\f"


@dataclass(frozen=True)
class PropertyFile:
    """The properties of a file, and the line of each key."""

    path: Path
    values: dict[str, str] = field(repr=False)
    lines: dict[str, int] = field(default_factory=dict, repr=False)

    def where(self, key: str) -> str:
        """Return the place of a key, for a message.

        >>> PropertyFile(Path("w.properties"), {"a": "1"}, {"a": 3}).where("a")
        'w.properties, line 3'
        """
        line = self.lines.get(key)
        return str(self.path) if line is None else f"{self.path}, line {line}"

    def wrong(self, key: str, why: object) -> ConfigError:
        """Return the error for the value of a key."""
        return ConfigError(f"{self.where(key)}: {why}")


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a file."""
    return read_property_file(path).values


def read_property_file(path: Path) -> PropertyFile:
    """Return the properties of a file with their lines."""
    return property_file(path, read_configuration(path))


def read_configuration(path: Path) -> str:
    """Return the text of a configuration file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} has {len(data)} bytes; a property file may have {_LARGEST}")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")  # what Java wrote before its release 9


def property_file(path: Path, text: str) -> PropertyFile:
    """Return the properties of a text that was read from a file."""
    try:
        found = {key: (value, line) for line, key, value in _entries(text)}
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    values = {key: value for key, (value, _) in found.items()}
    return PropertyFile(path, values, {key: line for key, (_, line) in found.items()})


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties of a text; where a key is there twice, the last one counts.

    >>> parse_properties("# a comment\\nname = orders\\ntopics: a,\\\\\\n   b\\nempty\\n")
    {'name': 'orders', 'topics': 'a,b', 'empty': ''}
    """
    return {key: value for _, key, value in _entries(text)}


def _entries(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in _logical_lines(text):
        key, value = _split(line)
        yield number, _plain(key), _plain(value)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, numbered; one that ends with a backslash goes on in the next one."""
    pending: str | None = None
    first = 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(_BLANK)
        if pending is None:
            first = number
            if not line or line[0] in "#!":
                continue
        line = (pending or "") + line
        ends = len(line) - len(line.rstrip("\\"))
        if ends % 2:
            pending = line[:-1]
        else:
            pending = None
            yield first, line
    if pending:
        yield first, pending


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
    # Java writes a sign beyond U+FFFF as two escapes.
    plain = _ESCAPE.sub(sign, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
