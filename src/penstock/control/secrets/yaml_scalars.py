"""The scalars of a YAML text, where they are in it, and a text with some of them replaced.

Comments, order and form of the text remain. Nodes are visited once, however often aliases repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.config.files import NOT_YAML, yaml_problem
from penstock.errors import ConfigError

Path = tuple[str | int, ...]
_TEXT = "tag:yaml.org,2002:str"
_DEEPEST = 100


@dataclass(frozen=True)
class Scalar:
    """One value of the text; `names` are the keys that lead to it."""

    path: Path
    node: yaml.ScalarNode

    @property
    def names(self) -> list[str]:
        """Return the keys above the value, the nearest last."""
        return [part for part in self.path if isinstance(part, str)]

    def value(self) -> Any:
        """Return the value as YAML reads it: a text, a number, a truth value, None."""
        if self.node.tag == _TEXT:
            return self.node.value
        try:
            return yaml.SafeLoader("").construct_object(self.node)
        except (ValueError, yaml.YAMLError):
            return self.node.value

    def set(self, text: str) -> None:
        """Replace the value by a text."""
        self.node.value, self.node.tag, self.node.style = text, _TEXT, '"'


class Document:
    """A YAML text whose scalars can be replaced."""

    def __init__(self, text: str, origin: str) -> None:
        self._text = text
        self._comments: list[tuple[int, int, str]] = []
        self._replaced: dict[int, Scalar] = {}
        try:
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
            self.scalars = list(_scalars(self.root))
        except NOT_YAML as error:
            line, what = yaml_problem(error)
            problem = f"{origin}: line {line}: not YAML: {what}"
        else:
            return
        # Raised out here: the YAML error quotes the text, and must not be chained to it.
        raise ConfigError(problem)

    def data(self) -> Any:
        """Return the data of the document, with the replaced scalars."""
        loader = yaml.SafeLoader("")
        return None if self.root is None else loader.construct_document(self.root)

    def replace(self, scalar: Scalar, text: str) -> None:
        """Replace a value by a text."""
        scalar.set(text)
        self._replaced[id(scalar.node)] = scalar

    def rewrite_comments(self, rewrite: Callable[[str], str]) -> None:
        """Replace each comment by what `rewrite` returns for it."""
        for start, end in _comments(self._text):
            before = self._text[start:end]
            if (after := rewrite(before)) != before:
                self._comments.append((start, end, after))

    def text(self) -> str:
        """Return the text with all replacements; in YAML's own form where it cannot be edited."""
        edits = [*self._comments, *(_edit(self._text, each) for each in self._replaced.values())]
        if not edits:
            return self._text
        text = self._text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        plain: str = yaml.serialize(self.root, Dumper=yaml.SafeDumper, allow_unicode=True)
        return text if _is_same(text, plain) else plain


def _edit(text: str, scalar: Scalar) -> tuple[int, int, str]:
    start, end = scalar.node.start_mark.index, scalar.node.end_mark.index
    shown = yaml.dump(scalar.node.value, default_style='"', width=10**9, allow_unicode=True)
    # The span of a block (`|` or `>`) has the end of its line.
    return start, end, shown.rstrip("\n") + ("\n" if text[start:end].endswith("\n") else "")


def _is_same(text: str, plain: str) -> bool:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        again: str = yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True)
    except NOT_YAML:
        return False
    return again == plain


def _scalars(root: yaml.Node | None) -> Iterator[Scalar]:
    waiting: list[tuple[Path, yaml.Node | None]] = [((), root)]
    visited: set[int] = set()
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, yaml.ScalarNode):
            yield Scalar(path, node)
        elif node is not None and id(node) not in visited and len(path) < _DEEPEST:
            visited.add(id(node))
            waiting += [((*path, key), child) for key, child in children_of(node)][::-1]


def children_of(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node]]:
    """Yield what is in a list or a mapping, with its place or key; in a scalar there is nothing."""
    if isinstance(node, yaml.SequenceNode):
        yield from enumerate(node.value)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            yield str(key.value), child


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments: what starts with # between two tokens."""
    done = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        gap = text[done : token.start_mark.index]
        if "#" in gap:
            yield done + gap.index("#"), token.start_mark.index
        done = max(done, token.end_mark.index)
    if "#" in text[done:]:
        yield done + text[done:].index("#"), len(text)
