"""Reads Spark's schema text ("symbol string not null, tags array<string>") without Spark.

A definition is checked before any Java starts, so the text is parsed here, with better errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import ConfigError, nearest
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type
from penstock.pipeline.names import unquoted

_SCALARS = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_DECIMALS = ("decimal", "dec", "numeric")
_TYPE_NAMES = (*_SCALARS, *_DECIMALS, "array", "map", "struct")
# What other systems say, too far in spelling for a guess to find it.
_MEANT = {
    "text": "string",
    "varchar": "string",
    "char": "string",
    "str": "string",
    "uuid": "string",
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "number": "double",
    "bytes": "binary",
    "datetime": "timestamp",
    "object": "struct",
    "list": "array",
}
_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<mark>[<>(),:]))")
_MAX_DEPTH = 32
_END = "the end of the text"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return _END if self.kind == "end" else repr(self.text)


def parse_fields(text: str) -> tuple[Field, ...]:
    """Read a list of columns.

    >>> [field.name for field in parse_fields("symbol string not null, price decimal(10,2)")]
    ['symbol', 'price']
    """
    return _Parser(text).whole_list()


def parse_type(text: str) -> tuple[Type, bool]:
    """Read one type, and whether `not null` follows it.

    >>> parse_type("bigint not null")
    (Scalar(name='bigint'), True)
    """
    return _Parser(text).whole_type()


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            hint = "a name with other characters goes into backticks: `my name`"
            raise _error(text, position, f"{text[position]!r} cannot stand here; {hint}")
        kind = match.lastgroup or ""
        yield _Token(kind, match[kind], match.start(kind))
        position = match.end()
    yield _Token("end", "", end)


def _error(text: str, position: int, message: str) -> ConfigError:
    return ConfigError(
        f"schema text, position {position + 1}: {message} (in {_around(text, position)})"
    )


def _around(text: str, position: int) -> str:
    start, end = max(0, position - 30), position + 30
    head, tail = "..." if start else "", "..." if end < len(text) else ""
    return repr(head + text[start:end] + tail)


class _Parser:
    """One pass over the tokens, one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def whole_list(self) -> tuple[Field, ...]:
        fields = self._fields("end")
        return self._checked(fields, 0).fields

    def whole_type(self) -> tuple[Type, bool]:
        result = self._type(), self._not_null()
        if self._next.kind != "end":
            raise self._unexpected("'not null' or nothing")
        return result

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _unexpected(self, wanted: str) -> ConfigError:
        return _error(self._text, self._next.position, f"expected {wanted}, found {self._next}")

    def _skip(self, mark: str) -> bool:
        matches = self._next.kind == "mark" and self._next.text == mark
        if matches:
            self._take()
        return matches

    def _need(self, mark: str) -> None:
        if not self._skip(mark):
            raise self._unexpected(repr(mark))

    def _word(self, word: str) -> bool:
        matches = self._next.kind == "word" and self._next.text.lower() == word
        if matches:
            self._take()
        return matches

    def _fields(self, until: str) -> list[Field]:
        fields = [self._field()]
        while self._skip(","):
            fields.append(self._field())
        if until == "end" and self._next.kind != "end":
            raise self._unexpected("'not null', ',' or the end")
        return fields

    def _field(self) -> Field:
        name = self._name()
        self._skip(":")
        return Field(name, self._type(), self._not_null())

    def _name(self) -> str:
        if self._next.kind == "word":
            return self._take().text
        if self._next.kind == "quoted" and len(self._next.text) > 2:
            return unquoted(self._take().text)
        raise self._unexpected("a field name")

    def _not_null(self) -> bool:
        if not self._word("not"):
            return False
        if not self._word("null"):
            raise self._unexpected("'null' after 'not'")
        return True

    def _type(self) -> Type:
        token = self._next
        if token.kind != "word":
            raise self._unexpected("a type")
        self._take()
        name = token.text.lower()
        if name in _SCALARS:
            return Scalar(_SCALARS[name])
        if name in _DECIMALS:
            return self._decimal(token)
        if name in ("array", "map", "struct"):
            return self._nested(name, token)
        guess = f"did you mean {_MEANT[name]!r}?" if name in _MEANT else nearest(name, _TYPE_NAMES)
        raise _error(self._text, token.position, f"{token.text!r} is not a type; {guess}")

    def _decimal(self, token: _Token) -> Type:
        if not self._skip("("):
            return Decimal()
        precision = self._number()
        scale = self._number() if self._skip(",") else 0
        self._need(")")
        try:
            return Decimal(precision, scale)
        except ConfigError as error:
            raise _error(self._text, token.position, str(error)) from None

    def _number(self) -> int:
        if not (self._next.kind == "word" and re.fullmatch("[0-9]{1,9}", self._next.text)):
            raise self._unexpected("a number of digits")
        return int(self._take().text)

    def _nested(self, name: str, token: _Token) -> Type:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _error(self._text, token.position, f"types nest at most {_MAX_DEPTH} deep")
        self._need("<")
        inner: Type
        if name == "struct":
            inner = self._checked(self._fields(">"), token.position)
        else:
            inner = self._map() if name == "map" else Array(self._element())
        self._need(">")
        self._depth -= 1
        return inner

    def _map(self) -> Map:
        position = self._next.position
        key = self._type()
        if key != Scalar("string"):
            raise _error(self._text, position, f"a map has string keys, not {key.ddl()}")
        self._need(",")
        return Map(self._element())

    def _element(self) -> Type:
        element = self._type()
        if self._next.text.lower() == "not":
            hint = "values in an array or a map may always be null in Spark's text"
            raise _error(self._text, self._next.position, f"'not null' cannot stand here: {hint}")
        return element

    def _checked(self, fields: list[Field], position: int) -> Struct:
        try:
            return Struct(tuple(fields))
        except ConfigError as error:
            raise _error(self._text, position, str(error)) from None
