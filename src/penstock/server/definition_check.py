"""Checks a definition without starting anything, and without resolving its references.

Environment variables, files and Python modules belong to the workers: the server may not have them, and
must not read them or run their code for a caller. They are checked when a worker starts the deployment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from penstock.config.references import without_lookups
from penstock.config.secrets import MASK
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.secrets.yaml_scalars import Document, Path
from penstock.control.store.rows import Kind
from penstock.errors import ConfigError, DefinitionError, Problem, nearest
from penstock.flows.definition.reading import defines_flow, parse_flow
from penstock.pipeline.reading import parse_pipeline
from penstock.pipeline.values import without_imports
from penstock.server.definition_limits import bounded_yaml

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:env:([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?|file:[^}]+)\}")
# What stands for an unknown value: a problem that is there with each of them is not due to the value.
_STAND_INS = ("reference", "1", "https://reference/x")

Parse = Callable[[str, str], object]


def _as_flow(text: str, origin: str) -> object:
    # Whatever looks like a reference still: nothing of this process is filled in.
    return parse_flow(text, origin, fill=lambda value: value)


_PARSERS: dict[Kind, Parse] = {Kind.PIPELINE: parse_pipeline, Kind.FLOW: _as_flow}
_PARTS = {Kind.PIPELINE: "name, source and sink", Kind.FLOW: "name, trigger and steps"}


@dataclass(frozen=True)
class Checked:
    """A definition that was checked: as it may be stored, where its state is, and its problems."""

    sealed: str
    state: str | None
    problems: list[Problem]
    state_is_known: bool = True
    kind: Kind = Kind.PIPELINE

    def require_valid(self, name: str) -> None:
        """Raise if there are problems."""
        if self.problems:
            raise DefinitionError(self.problems, f"the definition of {name!r}", self.kind.value)


def checked_definition(
    secrets: SpecSecrets,
    name: str,
    text: str,
    previous: str | None = None,
    kind: Kind | None = None,
) -> Checked:
    """Check the definition of a deployment; `previous` is the stored text, for masked values.

    Without a kind, a definition with a trigger is that of a flow, any other one that of a pipeline.
    """
    origin = f"the definition of {name!r}"
    _require_text(text, origin)
    data = bounded_yaml(text, origin)
    kind = kind or (Kind.FLOW if defines_flow(data) else Kind.PIPELINE)
    if not isinstance(data, dict):
        structure = Problem((), f"a definition is a mapping with {_PARTS[kind]}", 1)
        return Checked("", None, [structure], kind=kind)
    sealed = secrets.sealed(name, text, previous)
    # With the real values in place of masked ones: an address with a mask in it would not be valid.
    opened = _opened_text(secrets, name, sealed, text)
    document, unknown = _without_references(opened, origin)
    problems = _problems(opened, origin, _PARSERS[kind])
    if not any(problem.path == ("name",) for problem in problems):
        problems += _name_problems(name, document, unknown)
    state = document.data().get("state")
    known = ("state",) not in unknown
    return Checked(sealed, state if isinstance(state, str) else None, problems, known, kind)


def read_kind(text: str) -> Kind:
    """Return the kind of a deployment; jobs and connectors are deployed in other ways.

    >>> read_kind("pipeline")
    <Kind.PIPELINE: 'pipeline'>
    """
    allowed = [kind.value for kind in _PARSERS]
    if text in allowed:
        return Kind(text)
    if text in [kind.value for kind in Kind]:
        raise ConfigError(
            f"a deployment of the kind {text!r} cannot be given here; allowed: {', '.join(allowed)}"
        )
    raise ConfigError(f"{text!r} is not a kind of deployment; {nearest(text, allowed)}")


def _require_text(text: str, origin: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(
            f"{origin} has half of a surrogate pair: it is not Unicode text"
        ) from None
    if not text.strip():
        raise DefinitionError([Problem((), "it is empty", 1)], origin)


def _opened_text(secrets: SpecSecrets, name: str, sealed: str, text: str) -> str:
    """Return the text with secrets; as it was given, where it has them."""
    return text if MASK not in text else secrets.opened_text(name, sealed)


def _name_problems(name: str, document: Document, unknown: set[Path]) -> list[Problem]:
    given = next((each for each in document.scalars if each.path == ("name",)), None)
    if given is None or (given.value() == name and ("name",) not in unknown):
        return []
    shown = "a reference" if ("name",) in unknown else f"{given.value()!r:.200}"
    text = f"is {shown}, and the deployment is {name!r}; the two are the same"
    return [Problem(("name",), text, given.node.start_mark.line + 1)]


def _without_references(
    text: str, origin: str, stand_in: str = _STAND_INS[0]
) -> tuple[Document, set[Path]]:
    """Return the document with references replaced, and the paths of values that are unknown."""
    document = Document(text, origin)
    unknown: set[Path] = set()
    for scalar in document.scalars:
        value = scalar.value()
        if not isinstance(value, str) or not _REFERENCE.search(value):
            continue
        plain = _REFERENCE.sub(partial(_placeholder, stand_in), value)
        if plain != value:
            unknown.add(scalar.path)
            document.replace(scalar, plain)
    return document, unknown


def _placeholder(stand_in: str, match: re.Match[str]) -> str:
    if match[0] == "$${":
        return match[0]
    return match[2][2:] if match[2] else stand_in


def _problems(text: str, origin: str, parse: Parse) -> list[Problem]:
    """Return the problems that are not due to values which are unknown here."""
    document, unknown = _without_references(text, origin)
    problems = _parse_problems(document.text(), origin, parse)
    sure = [each for each in problems if not any(_starts(each.path, path) for path in unknown)]
    if not any(_starts(path, each.path) for each in sure for path in unknown):
        return sure
    # A problem of something that has an unknown value inside: it may be due to that value.
    for stand_in in _STAND_INS[1:]:
        other, _ = _without_references(text, origin, stand_in)
        others = {
            (each.path, each.message) for each in _parse_problems(other.text(), origin, parse)
        }
        sure = [each for each in sure if (each.path, each.message) in others]
    return sure


def _parse_problems(text: str, origin: str, parse: Parse) -> list[Problem]:
    try:
        # What replaced a reference may have made another one; an escaped one may have become one.
        with without_imports(), without_lookups():
            parse(text, origin)
    except DefinitionError as error:
        return error.problems
    except ConfigError as error:
        return [Problem((), str(error))]
    return []


def _starts(path: Path, start: Path) -> bool:
    return path[: len(start)] == start
