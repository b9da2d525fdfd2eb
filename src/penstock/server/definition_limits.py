"""Limits of a definition's text: YAML with aliases of aliases grows when it is read."""

from __future__ import annotations

import yaml

from penstock.config.files import NOT_YAML, yaml_problem
from penstock.errors import DefinitionError, Problem

_MOST_CHARACTERS = 100_000
_MOST_LINES = 5_000
_MOST_VALUES = 5_000
_MOST_REFERENCES = 500
_DEEPEST = 50


def require_bounded(text: str, origin: str) -> None:
    """Refuse a text that is not YAML, contains itself, or has too many values or levels.

    >>> require_bounded("a: &x [1, 2]\\nb: [*x, *x]", "the definition")
    """
    try:
        problem = _length_problem(text) or _event_problem(text) or _problem(text)
    except NOT_YAML as error:
        line, what = yaml_problem(error)
        problem = Problem((), f"not YAML: {what}", line)
    # Raised out here: the YAML error quotes the text, and must not be chained to it.
    if problem is not None:
        raise DefinitionError([problem], origin)


def _length_problem(text: str) -> Problem | None:
    counts = {
        "characters": (len(text), _MOST_CHARACTERS),
        "lines": (text.count("\n"), _MOST_LINES),
        "references": (text.count("${"), _MOST_REFERENCES),
    }
    for what, (count, most) in counts.items():
        if count > most:
            return Problem((), f"it has {count} {what}; allowed: {most}")
    return None


def _event_problem(text: str) -> Problem | None:
    """Return what is wrong with what is written; it stops reading where it is too much."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return Problem((), f"it has more than {_DEEPEST} levels", event.start_mark.line + 1)
        if number > 3 * _MOST_VALUES:
            return Problem((), f"it has more than {_MOST_VALUES} values")
    return None


def _problem(text: str) -> Problem | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or (problem := _size_problem(root)) is not None:
        return None if root is None else problem
    # Tags and values that have no meaning raise here.
    yaml.SafeLoader("").construct_document(root)
    return None


def _size_problem(root: yaml.Node) -> Problem | None:
    """Return what is wrong with the size of a document, as if every alias were written out."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node, depth: int) -> int:
        if id(node) in sizes:
            return sizes[id(node)]
        if id(node) in open_nodes or depth > _DEEPEST:
            raise RecursionError
        open_nodes.add(id(node))
        total = 1 + sum(size(child, depth + 1) for child in _children(node))
        open_nodes.discard(id(node))
        sizes[id(node)] = total
        return total

    try:
        count = size(root, 0)
    except RecursionError:
        return Problem((), f"it contains itself, or has more than {_DEEPEST} levels")
    if count > _MOST_VALUES:
        return Problem((), f"it has more than {_MOST_VALUES} values, with aliases written out")
    return None


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return []
