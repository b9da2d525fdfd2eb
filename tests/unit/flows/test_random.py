"""Random expressions, payloads and definitions: every failure is a documented error."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from penstock.errors import DefinitionError
from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.definition.step_model import KINDS
from penstock.flows.expressions import FUNCTIONS, Expression, ExpressionError
from penstock.flows.message import Messages
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


PARTS = [
    *("payload", "$", "payload.a", "payload.b", "payload.b.a", "payload.a[0]", "attribute.a"),
    *("attribute", "variable.x", "error", "1", "2.5", "'a'", "null", "true", "[1, payload.a]"),
    *("{k: payload.a, l: attribute.a}", "upper(attribute.a)", "length(payload.a)", "payload.b.a[0]"),
]  # fmt: skip
JOINTS = ["+", "-", "*", "/", "%", "=", "!=", "<", ">=", "and", "or", "||", "in"]


def random_expression(chance: random.Random, depth: int = 0) -> str:
    if depth > 2 or chance.random() < 0.3:
        return chance.choice(PARTS)
    left, right = random_expression(chance, depth + 1), random_expression(chance, depth + 1)
    forms = [f"({left}) {chance.choice(JOINTS)} ({right})"] * 6
    forms += [f"not ({left})", f"({left}) is null", f"({left}) is not null"]
    return chance.choice([*forms, f"case when {left} then {right} end", f"{{m: {left}}}"])


def value_or_error(call: Any, of: Any) -> Any:
    try:
        return repr(call(of))
    except Exception as error:
        return type(error)


def test_many_messages_at_once_give_what_each_of_them_gives_alone() -> None:
    chance = random.Random(7)
    compared = failed = 0
    numbers = [{"a": n, "b": {"a": [n / 2]}} for n in range(5)]
    pools: list[list[Any]] = [
        VALUES,
        numbers,
        [b'{"a": 1}', b'{"a": 2.5}'],
        [{"a": "x"}, {"a": "y"}],
    ]
    for _ in range(2000):
        expression = Expression.read(random_expression(chance))
        pool = chance.choice(pools)
        messages = [
            Message(
                chance.choice(pool), {"a": chance.choice(pool)}, {"x": chance.choice([1, None])}
            )
            for _ in range(chance.randint(1, 4))
        ]
        alone = [value_or_error(expression.value, message) for message in messages]
        together = value_or_error(expression.column(), Messages(messages))
        if isinstance(together, str):
            assert together == f"[{', '.join(map(str, alone))}]", (expression.given, messages)
            compared += 1
        else:
            assert any(isinstance(each, type) for each in alone), (expression.given, messages)
            failed += 1

    assert compared > 300
    assert failed > 300


def test_a_message_that_fails_leaves_the_others_of_its_batch_as_they_are() -> None:
    payloads = [{"n": n} if n % 700 else {"n": "x"} for n in range(2000)]
    steps = [
        {"map": {"n": "payload.n * 2"}},
        {"filter": "payload.n % 4 = 0"},
        {"set": {"variable": {"half": "payload.n / 2"}, "attribute": {"m": "payload.n"}}},
        {"publish": {"kafka": {"topic": "a", "key": "${variable.half}"}}},
    ]
    flow = Flow(name="t", trigger={"kafka": "orders"}, steps=steps)
    canned = CannedReplies()

    result = CompiledFlow(flow).run([Message(each) for each in payloads], canned.systems())

    passed = [n for n in range(2000) if n % 700 and n % 2 == 0]
    assert [m.variable["half"] for m in result.results] == passed
    assert [m.attribute["m"] for m in result.results] == [2 * n for n in passed]
    assert [letter.message.payload for letter in result.dead_letters] == [{"n": "x"}] * 3
    assert {letter.error["Code"] for letter in result.dead_letters} == {"CORE:EXPRESSION"}
