"""Reads pipeline definitions from YAML, and says of each problem on which line it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from penstock.config import resolve_references
from penstock.config.files import NOT_YAML, yaml_problem
from penstock.errors import ConfigError, DefinitionError, Problem
from penstock.pipeline.definition import Pipeline
from penstock.pipeline.values import add_to_path

Lines = dict[tuple[Any, ...], int]


def read_pipeline(path: str | Path) -> Pipeline:
    """Read and check one definition; everything that is wrong is in one DefinitionError."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    _import_from_folder_of(file)
    return parse_pipeline(text, origin=str(file))


def parse_pipeline(text: str, origin: str = "definition") -> Pipeline:
    """Read a definition from YAML text.

    >>> parse_pipeline("name: t\\nsource: {kafka: {topics: t}}\\nsink: console").name
    't'
    """
    value, lines = with_lines(text, origin)
    if not isinstance(value, dict):
        raise DefinitionError(
            [Problem((), "a definition is a mapping with name, source and sink", 1)], origin
        )
    try:
        return Pipeline(**dict(_filled_in(value)))
    except DefinitionError as error:
        placed = [replace(problem, line=line_of(problem.path, lines)) for problem in error.problems]
        raise DefinitionError(
            sorted(placed, key=lambda problem: problem.line or 0), origin
        ) from None


def _filled_in(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fill in references, but for the connection's: it fills in its own, and only once."""
    for key, part in value.items():
        try:
            yield key, part if key == "connection" else resolve_references(part)
        except ConfigError as error:
            raise DefinitionError([Problem((key,), str(error))]) from None


def _import_from_folder_of(file: Path) -> None:
    """Import parsers and steps from the folder of the file that names them."""
    add_to_path((str(file.resolve().parent),))


def with_lines(text: str, origin: str, what: str = "pipeline") -> tuple[Any, Lines]:
    """Return the values of a YAML text, and the line of each by its path; repeated keys are refused."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        twice = list(_duplicates(node))
        if twice:
            raise DefinitionError(twice, origin, what)
        return yaml.safe_load(text), dict(_lines(node, ()))
    except NOT_YAML as error:
        line, problem = yaml_problem(error)
    # Raised out here, so that the YAML error, which quotes the file, is not chained to it.
    raise DefinitionError([Problem((), f"not YAML: {problem}", line)], origin, what)


def line_of(path: tuple[Any, ...], lines: Lines) -> int | None:
    """Return the line of a path or, if the path is not in the file, of its nearest parent."""
    known = (lines.get(path[:length]) for length in range(len(path), -1, -1))
    return next((line for line in known if line), None)


def _lines(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    if node is None:
        return
    if path == ():
        yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _lines(value, (*path, index))


def _duplicates(node: Any) -> Iterator[Problem]:
    """Find repeated keys: YAML silently replaces the earlier one, a definition refuses it."""
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
