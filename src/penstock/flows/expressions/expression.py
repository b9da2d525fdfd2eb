"""`Expression` and `Template`: values in options of a flow; what runs is made once a process."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from penstock.flows.expressions import nodes
from penstock.flows.expressions.columns import column_of
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.scope import Column, Evaluate, Scope, Scopes
from penstock.flows.expressions.syntax import parsed
from penstock.flows.expressions.value_text import text_of

# A place for an expression: braces in texts of it do not end it.
_PLACE = re.compile(
    r"""\$\$\{|\$\{((?:[^'"{}]|'[^']*'|"(?:[^"\\]|\\.)*"|\{(?:[^'"{}]|'[^']*'|"(?:[^"\\]|\\.)*")*\})*)\}"""
)
_SHOWN = 80
_DEEPEST = 20


@lru_cache(maxsize=4096)
def evaluator(text: str) -> Evaluate:
    """Return what evaluates an expression, or a text with `${...}` in it."""
    return template(text, text_of) if "${" in text else parsed(text)


@lru_cache(maxsize=1024)
def template(text: str, written: Callable[[Any], str]) -> Evaluate:
    """Return what fills in a text; `written` is what becomes of each value.

    A text that is one place and nothing else has the value itself, whatever it is.
    """
    parts = _parts(text)
    if len(parts) == 1 and not isinstance(parts[0], str) and written is text_of:
        return parts[0]
    if all(isinstance(part, str) for part in parts):
        return nodes.constant("".join(map(str, parts)))

    def evaluate(scope: Scope) -> str:
        return "".join(part if isinstance(part, str) else written(part(scope)) for part in parts)

    return evaluate


def _parts(text: str) -> list[str | Evaluate]:
    parts: list[str | Evaluate] = []
    at = 0
    for place in _PLACE.finditer(text):
        _refuse_open(text[at : place.start()])
        parts.append(text[at : place.start()])
        parts.append("${" if place[1] is None else parsed(place[1]))
        at = place.end()
    _refuse_open(text[at:])
    parts.append(text[at:])
    return [part for part in parts if part != ""]


def _refuse_open(text: str) -> None:
    if "${" in text:
        raise ExpressionError(
            f"{text[text.index('${') :][:40]!r} has no end; close it with }}, or write $${{ for a "
            "plain ${"
        )


def evaluate(text: str, scope: Scope | None = None) -> Any:
    """Return the value of an expression.

    >>> evaluate("upper('ab') || length([1, 2])")
    'AB2'
    """
    return evaluator(text)(scope)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Expression:
    """An expression, or plain values with expressions in them (as a mapping of YAML).

    >>> Expression.read("1 + 1").value(None), Expression.read({"a": "2 * 3", "b": [1]}).value(None)
    (2, {'a': 6, 'b': [1]})
    """

    given: Any

    @classmethod
    def read(cls, given: Any) -> Expression:
        """Read what a definition gives; raise ExpressionError where it cannot be read."""
        if isinstance(given, Expression):
            return given
        made = cls(given)
        _compiled(given, 0)
        return made

    def value(self, scope: Any) -> Any:
        """Return the value for a message."""
        return self.evaluator()(scope)

    def evaluator(self) -> Evaluate:
        """Return what evaluates it, with its text in errors."""
        evaluate, shown = _compiled(self.given, 0), _shown(self.given)
        if nodes.is_constant(evaluate):
            return evaluate

        def guarded(scope: Scope) -> Any:
            try:
                return evaluate(scope)
            except ExpressionError as error:
                raise ExpressionError(f"{shown}: {error}") from None
            except RecursionError:
                raise ExpressionError(f"{shown}: a value is nested too deep") from None

        return guarded

    def column(self) -> Column:
        """Return what evaluates it for many messages at once; it raises where one has no value."""
        return column_of(_compiled(self.given, 0))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated(cls.read),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda e: e.given),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"description": "An expression, or values with expressions in them."}


@dataclass(frozen=True)
class Template:
    """A text with expressions in it, as `orders-${payload.region}`.

    >>> Template.read("a-${1 + 1}").text(None)
    'a-2'
    """

    given: str

    @classmethod
    def read(cls, given: Any) -> Template:
        """Read a text; raise ExpressionError where an expression in it cannot be read."""
        if isinstance(given, Template):
            return given
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise ExpressionError(f"a text is expected, given {given!r:.60}")
        made = cls(str(given))
        _parts(made.given)
        return made

    @property
    def is_plain(self) -> bool:
        """Return whether no message changes the text."""
        return not any(callable(part) for part in _parts(self.given))

    @property
    def prefix(self) -> str:
        """Return the text before the first expression."""
        first = _parts(self.given)[:1]
        return first[0] if first and isinstance(first[0], str) else ""

    def parts(self) -> list[str | Evaluate]:
        """Return the texts, and what evaluates the places between them."""
        return _parts(self.given)

    def sample(self, value: str = "x") -> str:
        """Return the text with the same value in each place, for checks of its form."""
        return "".join(value if callable(part) else str(part) for part in _parts(self.given))

    def evaluator(self, written: Callable[[Any], str] = text_of) -> Evaluate:
        """Return what fills it in, with its text in errors."""
        fill, shown = template(self.given, written), _shown(self.given)

        def guarded(scope: Scope) -> str:
            try:
                value = fill(scope)
                return value if isinstance(value, str) else written(value)
            except ExpressionError as error:
                raise ExpressionError(f"{shown}: {error}") from None

        return guarded

    def column(self) -> Column:
        """Return what fills it in for many messages at once; it raises where one has no text."""
        each = column_of(template(self.given, text_of))

        def column(scopes: Scopes) -> list[Any]:
            return [v if isinstance(v, str) else text_of(v) for v in each(scopes)]

        return column

    def text(self, scope: Any) -> str:
        """Return the text for a message."""
        return str(self.evaluator()(scope))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated(cls.read),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda t: t.given),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "description": "A text; `${...}` in it is an expression."}


def _validated(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def validate(given: Any) -> Any:
        try:
            return read(given)
        except ExpressionError as error:
            raise PydanticCustomError("expression", "{reason}", {"reason": str(error)}) from None

    return validate


def _compiled(given: Any, depth: int) -> Evaluate:
    if depth > _DEEPEST:
        raise ExpressionError(f"values are nested deeper than {_DEEPEST} levels")
    if isinstance(given, str):
        return evaluator(given)
    if isinstance(given, dict):
        members = [(str(key), _compiled(value, depth + 1)) for key, value in given.items()]
        return nodes.object_of(members)
    if isinstance(given, list | tuple):
        return nodes.list_of([_compiled(value, depth + 1) for value in given])
    return nodes.constant(given)


def _shown(given: Any) -> str:
    text = given if isinstance(given, str) else repr(given)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
