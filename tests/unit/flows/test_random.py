"""Random expressions, payloads and definitions: every failure is a documented error."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from penstock.errors import DefinitionError
from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.definition.step_model import KINDS
from penstock.flows.expressions import FUNCTIONS, Expression, ExpressionError
from penstock.flows.publish.operation import OPERATIONS
from penstock.flows.testing import CannedReplies

WORDS = [
    *(
        "payload",
        "attribute",
        "variable",
        "error",
        "$",
        ".",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
    ),
    *("+", "-", "*", "/", "%", "||", "=", "<", ">=", "!=", "and", "or", "not", "in", "like", "is"),
    *(
        "null",
        "true",
        "case",
        "when",
        "then",
        "else",
        "end",
        "between",
        "1",
        "0",
        "2.5",
        "'a'",
        "'%'",
    ),
    *("[*]", "a", "b", "1e300", "'2024-01-01'", "if", "${", "'sha256'"),
    *(f"{name}(" for name in FUNCTIONS if name not in ("uuid", "now")),
]
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**70, 1.5, 1e308, "", "a", "2024-01-01", "\ud800", b"", b"\xff", b"{}"),
    *(
        [],
        [1, "a", None],
        [[1], [2]],
        {},
        {"a": 1, "b": {"a": [1]}},
        b'{"a": [1, {"b": 2}]}',
        b"[NaN]",
    ),
]


def test_random_expressions_fail_only_as_documented() -> None:
    chance = random.Random(4)
    read = 0
    for _ in range(4000):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 9)))
        with suppress(ExpressionError):
            expression = Expression.read(text)
            read += 1
            expression.value(Message(chance.choice(VALUES), {"a": chance.choice(VALUES)}))

    assert read > 50


def test_every_function_takes_any_value_or_refuses_it() -> None:
    chance = random.Random(5)
    values = 0
    for function in FUNCTIONS.values():
        for _ in range(60):
            count = chance.randint(function.least, min(function.most, function.least + 2))
            arguments = [chance.choice(VALUES) for _ in range(count)]
            names = ", ".join(f"attribute.a{n}" for n in range(count))
            given = {f"a{n}": value for n, value in enumerate(arguments)}
            with suppress(ExpressionError):
                Expression.read(f"{function.name}({names})").value(Message(None, given))
                values += 1

    assert values > 300


def random_part(chance: random.Random, depth: int = 0) -> Any:
    kinds = [
        None,
        True,
        -1,
        0,
        3,
        "x",
        "payload.a",
        "${payload.a}",
        "https://a.example/",
        "5s",
        [],
        {},
    ]
    if depth > 3 or chance.random() < 0.5:
        return chance.choice(kinds)
    if chance.random() < 0.3:
        return [random_part(chance, depth + 1) for _ in range(chance.randint(0, 2))]
    names = [
        *(
            "if",
            "steps",
            "when",
            "otherwise",
            "catch",
            "value",
            "topic",
            "url",
            "id",
            "retry",
            "query",
        ),
        *("on_error", "handler", "then", "parameters", "headers", "schema", "table", "key", "http"),
        *KINDS,
        *OPERATIONS,
    ]
    chosen = chance.sample(names, chance.randint(0, 3))
    return {name: random_part(chance, depth + 1) for name in chosen}


def test_random_definitions_are_refused_or_run() -> None:
    chance = random.Random(6)
    accepted = 0
    for _ in range(600):
        kind = chance.choice([*KINDS])
        step = {kind: random_part(chance)}
        try:
            flow = Flow(name="t", trigger={"kafka": "orders"}, steps=[step])
        except DefinitionError as error:
            assert error.problems
            continue
        accepted += 1
        messages = [Message(value) for value in VALUES]
        result = CompiledFlow(flow).run(messages, CannedReplies().systems())
        assert len(result.outcomes) == len(VALUES)
        assert Flow(**flow.model_dump(context={"with_secrets": True})) == flow

    assert accepted > 20
