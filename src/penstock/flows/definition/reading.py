"""Reads flows from YAML, and says of each problem on which line it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from penstock.config import resolve_references
from penstock.errors import ConfigError, DefinitionError, Problem
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.next_files import next_to
from penstock.pipeline.reading import line_of, with_lines
from penstock.pipeline.values import add_to_path

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:env|file):[^}]*\}")
_LARGEST = 4 * 2**20
_DEEPEST = 150


def read_flow(path: str | Path) -> Flow:
    """Read and check one flow; everything that is wrong is in one DefinitionError."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {file}: it is not UTF-8 text") from None
    add_to_path((str(file.resolve().parent),))
    with next_to(file):
        return parse_flow(text, origin=str(file))


def is_flow(path: Path) -> bool:
    """Return whether a file has the definition of a flow; read_flow checks the rest."""
    try:
        nodes = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return False
    pairs = nodes.value if isinstance(nodes, yaml.MappingNode) else []
    return defines_flow({str(key.value): None for key, _ in pairs})


def parse_flow(
    text: str, origin: str = "the flow", fill: Callable[[Any], Any] | None = None
) -> Flow:
    """Read a flow from YAML text; `fill` fills in references, by default those of this process.

    >>> parse_flow("name: t\\ntrigger: {kafka: orders}\\nsteps:\\n  - filter: payload.ok").name
    't'
    """
    if len(text) > _LARGEST:
        raise DefinitionError(
            [Problem((), f"has {len(text)} characters; allowed are {_LARGEST}")], origin, "flow"
        )
    _refuse_anchors(text, origin)
    value, lines = with_lines(text, origin, "flow")
    if not isinstance(value, dict):
        problem = Problem((), "a flow is a mapping with name, trigger and steps", 1)
        raise DefinitionError([problem], origin, "flow")
    try:
        return Flow(**{str(key): part for key, part in (fill or filled_in)(value).items()})
    except DefinitionError as error:
        placed = [replace(each, line=line_of(each.path, lines)) for each in error.problems]
        placed.sort(key=lambda each: each.line or 0)
        raise DefinitionError(placed, origin, "flow") from None


def _refuse_anchors(text: str, origin: str) -> None:
    """Refuse aliases, a few lines of which can stand for gigabytes, and values that nest too deep."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                what = "an alias (*name) is not allowed; write the values again"
                what = what if depth <= _DEEPEST else f"is nested deeper than {_DEEPEST} levels"
                line = event.start_mark.line + 1 if event.start_mark else None
                raise DefinitionError([Problem((), what, line)], origin, "flow")
    except (yaml.YAMLError, RecursionError, ValueError):
        return  # the reading itself reports it, with its line


def filled_in(value: Any) -> Any:
    """Fill in `${env:NAME}` and `${file:PATH}`; any other `${...}` is an expression."""
    if isinstance(value, dict):
        return {key: filled_in(part) for key, part in value.items()}
    if isinstance(value, list):
        return [filled_in(part) for part in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    try:
        return _REFERENCE.sub(_resolved, value)
    except ConfigError as error:
        raise DefinitionError([Problem((), str(error))], "the flow", "flow") from None


def _resolved(match: re.Match[str]) -> str:
    """Return the text of a reference; `$${` is left to the expressions, where it is a plain `${`."""
    return match[0] if match[0] == "$${" else str(resolve_references(match[0]))


def defines_flow(definition: object) -> bool:
    """Return whether a definition is one of a flow: it has a trigger, where a pipeline has a source.

    >>> defines_flow({"trigger": {"kafka": "a"}}), defines_flow({"source": {"kafka": "a"}})
    (True, False)
    """
    return (
        isinstance(definition, Mapping)
        and "trigger" in definition
        and not {"source", "sink"} & definition.keys()
    )
