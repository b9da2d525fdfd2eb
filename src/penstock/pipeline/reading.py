"""Reads pipeline definitions from YAML, and says of each problem on which line it stands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from penstock.config import resolve_references
from penstock.errors import ConfigError, DefinitionError, Problem
from penstock.pipeline.definition import Pipeline

Lines = dict[tuple[Any, ...], int]


def read_pipeline(path: str | Path) -> Pipeline:
    """Read and check one definition; everything that is wrong is in one DefinitionError."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    _import_beside(file)
    return parse_pipeline(text, origin=str(file))


def parse_pipeline(text: str, origin: str = "definition") -> Pipeline:
    """Read a definition from YAML text.

    >>> parse_pipeline("name: t\\nsource: {kafka: {topics: t}}\\nsink: console").name
    't'
    """
    value, lines = _with_lines(text, origin)
    if not isinstance(value, dict):
        raise DefinitionError(
            [Problem((), "a definition is a mapping with name, source and sink", 1)], origin
        )
    try:
        return Pipeline(**dict(_filled_in(value)))
    except DefinitionError as error:
        placed = [replace(found, line=_line(found.path, lines)) for found in error.problems]
        raise DefinitionError(sorted(placed, key=lambda found: found.line or 0), origin) from None


def _filled_in(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fill in references, but for the connection's: it fills in its own, and only once."""
    for key, part in value.items():
        try:
            yield key, part if key == "connection" else resolve_references(part)
        except ConfigError as error:
            raise DefinitionError([Problem((key,), str(error))]) from None


def _import_beside(file: Path) -> None:
    """Parsers and steps are looked up beside the file that names them."""
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _with_lines(text: str, origin: str) -> tuple[Any, Lines]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        twice = list(_duplicates(node))
        if twice:
            raise DefinitionError(twice, origin)
        return yaml.safe_load(text), dict(_lines(node, ()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise DefinitionError([Problem((), f"not YAML: {what}", line)], origin) from None
    except yaml.YAMLError as error:
        raise DefinitionError([Problem((), f"not YAML: {error}")], origin) from None


def _line(path: tuple[Any, ...], lines: Lines) -> int | None:
    """Return the line of a place or, where the place is not written down, of what it belongs to."""
    known = (lines.get(path[:length]) for length in range(len(path), -1, -1))
    return next((line for line in known if line), None)


def _lines(node: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    if node is None:
        return
    if place == ():
        yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*place, key.value), key.start_mark.line + 1
            yield from _lines(value, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*place, index), value.start_mark.line + 1
            yield from _lines(value, (*place, index))


def _duplicates(node: Any) -> Iterator[Problem]:
    """YAML lets a later key replace an earlier one in silence; a definition does not."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield Problem((str(key.value),), "is given twice", key.start_mark.line + 1)
            seen.add(key.value)
            yield from _duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _duplicates(value)
