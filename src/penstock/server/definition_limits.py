"""Limits of a definition's text: YAML with aliases of aliases grows when it is read."""

from __future__ import annotations

import yaml

from penstock.config.files import NOT_YAML, yaml_problem
from penstock.errors import DefinitionError, Problem

_MOST_VALUES = 100_000
_DEEPEST = 50


def require_bounded(text: str, origin: str) -> None:
    """Refuse a text that is not YAML, contains itself, or has too many values or levels.

    >>> require_bounded("a: &x [1, 2]\\nb: [*x, *x]", "the definition")
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        problem = None if root is None else _problem(root)
    except NOT_YAML as error:
        line, what = yaml_problem(error)
        problem = Problem((), f"not YAML: {what}", line)
    # Raised out here: the YAML error quotes the text, and must not be chained to it.
    if problem is not None:
        raise DefinitionError([problem], origin)


def _problem(root: yaml.Node) -> Problem | None:
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
