"""Paths of fields: `field.syntax.version` V1 (a name) and V2 (names with dots between them)."""

from __future__ import annotations

import re

from penstock.errors import ConfigError

_QUOTED = re.compile(r"`((?:\\`|`(?!\.|$)|[^`])*)`(?=\.|$)", re.DOTALL)


def field_path(text: str, version: str) -> list[str]:
    """Return the names of a path; raise ConfigError for a backtick without its pair.

    >>> field_path("a.b", "V1"), field_path("a.b", "V2"), field_path("`a.b`.c", "V2")
    (['a.b'], ['a', 'b'], ['a.b', 'c'])
    """
    if version.upper() == "V1":
        return [text]
    names: list[str] = []
    at = 0
    while at <= len(text):
        name, at = _step(text, at)
        names.append(name)
        if at == len(text):
            break
        at += 1
    return names


def _step(text: str, at: int) -> tuple[str, int]:
    """Return the name that begins at a position, and where it ends."""
    if text[at : at + 1] != "`":
        end = text.find(".", at)
        end = len(text) if end < 0 else end
        return text[at:end], end
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise ConfigError(
            f"Incomplete backtick pair in path: [{text}], consider adding a backtick before the next "
            "dot or at the end"
        )
    return quoted[1].replace("\\`", "`"), quoted.end()
