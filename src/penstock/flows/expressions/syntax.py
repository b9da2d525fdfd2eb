"""The grammar: words become functions of a message. Nothing of Python is ever evaluated.

A chain of operators of one rank is one function with a loop, so that a long expression needs no deep
stack; only brackets nest, and their depth is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import nearest
from penstock.flows.expressions import nodes
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.functions import FUNCTIONS
from penstock.flows.expressions.members import ALL, path
from penstock.flows.expressions.scope import NAMES, Evaluate
from penstock.flows.expressions.tokens import Token, tokens

DEEPEST = 50
_OR, _AND, _NOT, _COMPARE, _JOIN, _ADD, _MULTIPLY = range(1, 8)
_BINARY = {
    "or": _OR, "and": _AND, "||": _JOIN, "+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY,
    "%": _MULTIPLY,
    **dict.fromkeys(("=", "==", "!=", "<>", "<", "<=", ">", ">="), _COMPARE),
    **dict.fromkeys(("is", "in", "like", "between"), _COMPARE),
}  # fmt: skip
_CHAINS: dict[int, Callable[[list[Evaluate], list[str]], Evaluate]] = {
    _OR: nodes.any_of,
    _AND: nodes.all_of,
    _JOIN: nodes.concatenated,
    _ADD: nodes.computed,
    _MULTIPLY: nodes.computed,
}


def parsed(text: str) -> Evaluate:
    """Return an expression as a function of a message.

    >>> parsed("1 + 2 * 3")(None), parsed("case when 2 > 1 then 'more' end")(None)
    (7, 'more')
    """
    parser = _Parser(tokens(text))
    evaluate = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected("an operator or the end")
    return evaluate


class _Parser:
    def __init__(self, words: Sequence[Token]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        return self._words[self._at]

    def unexpected(self, wanted: str) -> ExpressionError:
        token = self.token
        shown = token.text if token.kind == "end" else repr(token.text[:40])
        return ExpressionError(
            f"column {token.at + 1}: {shown} is given where {wanted} is expected"
        )

    def expression(self) -> Evaluate:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(
                f"column {self.token.at + 1}: nested deeper than {DEEPEST} levels; compute a part in a "
                "step 'set' and use its variable"
            )
        evaluate = self._binary(_OR)
        self._depth -= 1
        return evaluate

    # -- operators

    def _binary(self, rank: int) -> Evaluate:
        if rank == _NOT:
            return self._negated()
        if rank > _MULTIPLY:
            return self._signed()
        if rank == _COMPARE:
            return self._compared()
        parts, symbols = [self._binary(rank + 1)], []
        while self._rank() == rank:
            symbols.append(self._next().text)
            parts.append(self._binary(rank + 1))
        return _CHAINS[rank](parts, symbols) if symbols else parts[0]

    def _rank(self) -> int:
        token = self.token
        return _BINARY.get(token.text, 0) if token.kind in ("op", "word") else 0

    def _negated(self) -> Evaluate:
        times = 0
        while self._takes("not"):
            times += 1
        inner = self._binary(_COMPARE)
        return nodes.negated(inner, times) if times else inner

    def _compared(self) -> Evaluate:
        left = self._binary(_JOIN)
        token = self.token
        if self._rank() == _COMPARE or (token.kind == "word" and token.text == "not"):
            left = self._comparison(left)
            if self._rank() == _COMPARE:
                raise self.unexpected("'and' or 'or' (comparisons are not chained)")
        return left

    def _comparison(self, left: Evaluate) -> Evaluate:
        is_negated = self._takes("not")
        symbol = self._next().text
        if symbol == "is":
            is_negated = self._takes("not")
            self._require("null")
            return nodes.is_null(left, is_negated)
        if symbol == "between":
            low = self._binary(_JOIN)
            self._require("and")
            found = nodes.between(left, low, self._binary(_JOIN))
        elif symbol == "in":
            found = nodes.among(left, self._choices())
        elif symbol == "like":
            found = nodes.like(left, self._binary(_JOIN))
        elif is_negated:
            self._at -= 1
            raise self.unexpected("'in', 'like' or 'between'")
        else:
            return nodes.compared(symbol, left, self._binary(_JOIN))
        return nodes.negated(found, 1) if is_negated else found

    def _choices(self) -> Evaluate:
        if not self._takes("("):
            return self._binary(_JOIN)
        return nodes.list_of(self._until(")"))

    def _signed(self) -> Evaluate:
        signs = 0
        while self.token.kind == "op" and self.token.text in ("-", "+"):
            signs += self._next().text == "-"
        inner = self._path()
        return nodes.opposite(inner) if signs % 2 else inner

    # -- operands

    def _path(self) -> Evaluate:
        is_payload = self.token.kind == "name" and self.token.text == "payload"
        base = self._operand()
        keys: list[Any] = []
        while self.token.kind == "op" and self.token.text in (".", "["):
            keys.append(self._key())
        if not keys:
            return base
        return path(nodes.name("document") if is_payload else base, keys)

    def _key(self) -> Any:
        if self._next().text == ".":
            if self.token.kind not in ("name", "word"):
                raise self.unexpected("the name of a member")
            token = self._next()
            return str(token.value or token.text)
        if self._takes("*"):
            self._require("]")
            return ALL
        key = self.expression()
        self._require("]")
        return nodes.constant_of(key)

    def _operand(self) -> Evaluate:
        token = self.token
        if token.kind in ("op", "end") and token.text not in ("(", "[", "{"):
            raise self.unexpected("a value")
        self._next()
        if token.kind in ("number", "text"):
            return nodes.constant(token.value)
        if token.kind == "word":
            return self._word(token)
        if token.kind == "name":
            return self._name(token)
        if token.text == "(":
            inner = self.expression()
            self._require(")")
            return inner
        if token.text == "[":
            return nodes.list_of(self._until("]"))
        return self._object()

    def _word(self, token: Token) -> Evaluate:
        constants = {"null": None, "true": True, "false": False}
        if token.text in constants:
            return nodes.constant(constants[token.text])
        if token.text == "case":
            return self._case()
        self._at -= 1
        raise self.unexpected("a value")

    def _name(self, token: Token) -> Evaluate:
        if self.token.text == "(" and self.token.kind == "op":
            return self._call(token)
        if token.text == "$":
            return nodes.name("document")
        if token.text not in NAMES:
            raise ExpressionError(
                f"column {token.at + 1}: there is no name {token.text[:40]!r}; "
                f"{nearest(token.text[:40], NAMES)}; a text is put in quotes"
            )
        return nodes.name(token.text)

    def _call(self, token: Token) -> Evaluate:
        self._next()
        arguments = self._until(")")
        function = FUNCTIONS.get(token.text.lower())
        if token.text.lower() == "if":
            return self._if(token, arguments)
        if function is None:
            raise ExpressionError(
                f"column {token.at + 1}: there is no function {token.text[:40]!r}; "
                f"{nearest(token.text[:40].lower(), [*FUNCTIONS])}"
            )
        if not function.least <= len(arguments) <= function.most:
            raise ExpressionError(
                f"column {token.at + 1}: {function.signature} is given {len(arguments)} arguments"
            )
        return nodes.called(function, arguments)

    def _if(self, token: Token, arguments: list[Evaluate]) -> Evaluate:
        if len(arguments) != 3:
            raise ExpressionError(
                f"column {token.at + 1}: if(condition, value, otherwise) is given {len(arguments)} "
                "arguments"
            )
        return nodes.cases([(arguments[0], arguments[1])], arguments[2])

    def _case(self) -> Evaluate:
        arms: list[tuple[Evaluate, Evaluate]] = []
        while self._takes("when"):
            condition = self.expression()
            self._require("then")
            arms.append((condition, self.expression()))
        if not arms:
            raise self.unexpected("'when'")
        otherwise = self.expression() if self._takes("else") else nodes.constant(None)
        self._require("end")
        return nodes.cases(arms, otherwise)

    def _object(self) -> Evaluate:
        members: list[tuple[str, Evaluate]] = []
        while not self._takes("}"):
            if members:
                self._require(",")
            token = self._next()
            if token.kind not in ("name", "word", "text"):
                self._at -= 1
                raise self.unexpected("the name of a member")
            self._require(":")
            members.append((str(token.value or token.text), self.expression()))
        return nodes.object_of(members)

    def _until(self, end: str) -> list[Evaluate]:
        found: list[Evaluate] = []
        while not self._takes(end):
            if found:
                self._require(",")
            found.append(self.expression())
        return found

    # -- words

    def _next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._at += 1
        return token

    def _takes(self, text: str) -> bool:
        token = self.token
        if token.kind in ("op", "word") and token.text == text:
            self._at += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._takes(text):
            raise self.unexpected(repr(text))
