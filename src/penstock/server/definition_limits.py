"""Limits of a definition's text: YAML with aliases of aliases grows when it is read."""

from __future__ import annotations

from typing import Any

import yaml

from penstock.config.files import NOT_YAML, yaml_problem
from penstock.errors import DefinitionError, Problem

_MOST_CHARACTERS = 100_000
_MOST_LINES = 5_000
_MOST_VALUES = 5_000
_MOST_REFERENCES = 500
_DEEPEST = 50


def bounded_yaml(text: str, origin: str) -> Any:
    """Return the data of a text; refuse one that is not YAML, contains itself, or has too much.

    >>> bounded_yaml("a: &x [1, 2]\\nb: [*x, *x]", "the definition")
    {'a': [1, 2], 'b': [[1, 2], [1, 2]]}
    """
    try:
        problem = _length_problem(text) or _event_problem(text)
        if problem is None:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            problem = None if root is None else _size_problem(root)
        if problem is None:
            return None if root is None else yaml.SafeLoader("").construct_document(root)
    except NOT_YAML as error:
        line, what = yaml_problem(error)
        problem = Problem((), f"not YAML: {what}", line)
    # Raised out here: the YAML error quotes the text, and must not be chained to it.
    raise DefinitionError([problem], origin)


def refuse_long(data: Any) -> None:
    """Refuse data of JSON with more than a definition may have, before it is written as YAML.

    >>> refuse_long({"name": "orders", "steps": []})
    """
    values = characters = 0
    waiting = [data]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
    counts = {"values": (values, _MOST_VALUES), "characters": (characters, _MOST_CHARACTERS)}
    for what, (count, most) in counts.items():
        if count > most:
            problem = Problem((), f"it has {count} {what}; allowed: {most}")
            raise DefinitionError([problem], "the definition")


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
