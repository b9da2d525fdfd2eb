"""Expressions: what the table of functions says is true, nulls are SQL's, nothing runs away."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.flows import Message
from penstock.flows.expressions import FUNCTIONS, Expression, ExpressionError, Template, evaluate

ORDER = Message(
    b'{"id": 7, "total": 150.5, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}], "note": null}',
    {"topic": "orders", "partition": 1, "offset": 4},
    {"region": "eu"},
    {"Code": "HTTP:404", "Description": "no"},
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_example_in_the_table_of_functions_is_true(name: str) -> None:
    examples = FUNCTIONS[name].examples

    assert examples
    assert [example for example in examples if evaluate(example) is not True] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("payload.id", 7),
        ("$.lines[*].sku", ["a", "b"]),
        ("sum($.lines[*].n)", 3),
        ("payload.lines[-1].sku", "b"),
        ("payload.lines[5].sku", None),
        ("payload.none.at.all", None),
        ("payload['id'] + 1", 8),
        ("attribute.topic || '/' || attribute.partition", "orders/1"),
        ("variable.region in ('eu', 'us') and payload.total > 100", True),
        ("error.Code like 'HTTP:4%'", True),
        ("payload.note is null and payload.id is not null", True),
        ("payload.note > 1", None),
        ("payload.note > 1 or true", True),
        ("payload.note > 1 and false", False),
        ("not (1 = 1)", False),
        ("7 / 2", 3.5),
        # The rest has the sign of the dividend, as in SQL.
        ("-7 % 3 + 2 * 3", 5),
        ("7 % -3", 1),
        ("-7.5 % 2", -1.5),
        (f"{-(2**70)} % 7", -(2**70 % 7)),
        ("regex_extract('ab', '(a)(b)')", "a"),
        ("regex_extract('aa', '(?:a)+')", "aa"),
        ("regex_extract('a(b', '[(](b)')", "b"),
        ("regex_extract('a(1)', 'a\\((?P<n>[0-9])')", "1"),
        ("regex_extract('x]-7', '[]x]+-(?:a|([0-9]))')", "7"),
        ("regex_extract('AB', '(?i)a(b)')", "B"),
        ("regex_extract('(a)b', '\\Q(a)\\E(b)')", "b"),
        ("regex_extract(':(1', '[[:punct:](]+([0-9])')", "1"),
        ("regex_extract('a', 'b')", None),
        ("1 in (2, null)", None),
        ("2 not in (1, 3)", True),
        ("5 between 1 and 5", True),
        ("case when payload.total > 200 then 'large' when true then 'small' end", "small"),
        ("if(payload.note is null, 'none', payload.note)", "none"),
        ("{id: payload.id, 'the lines': length($.lines)}", {"id": 7, "the lines": 2}),
        ("[1, 'a', null, true]", [1, "a", None, True]),
        ("\"a\\nb\" || 'it''s'", "a\nbit's"),
        ("true = 1", False),
        ("'1' = 1", False),
        ("2 * (3 + 4)", 14),
        ("order_${payload.id}", "order_7"),
        ("${payload.lines}", [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}]),
        ("$${payload.id}", "${payload.id}"),
    ],
)
def test_an_expression_has_its_value(text: str, value: Any) -> None:
    assert Expression.read(text).value(ORDER) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("payload.id / 0", "division by zero"),
        ("payload.id.x", "'x' is taken of a number, which has no members"),
        ("payload.lines.sku", "'sku' is taken of a list; give a number as in [0], or [*]"),
        ("payload.id + 'a'", "+ takes numbers, given a text; texts are joined with ||"),
        ("payload.id and true", "and takes true or false, given a number"),
        ("payload.id < 'a'", "a number and a text have no order"),
        ("to_number('x')", "to_number(): 'x' is not a number"),
        ("json('[NaN]')", "is not JSON"),
        ("json('1e400')", "is not JSON"),
        ("text(from_base64('/w=='))", "not UTF-8"),
        ("9e307 * 100", "not a finite number"),
        ("a ${payload.note}", "the value is null"),
        ("parse_time('yesterday')", "not a time in ISO 8601"),
        ("parse_time('1', '%Q')", "not a form of a time"),
        ("from_epoch_ms(9e30)", "out of range"),
        ("hash('a', 'md4')", "not a hash; did you mean 'md5'?"),
        ("matches('a', '(?=b)')", "regular expression of RE2"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as error:
        Expression.read(text).value(ORDER)

    assert problem in str(error.value)
    assert str(error.value).startswith(text[:20])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the end is given where a value is expected"),
        ("payload.", "the end is given where the name of a member is expected"),
        ("payload..a", "'.' is given where the name of a member"),
        ("1 = 2 = 3", "comparisons are not chained"),
        ("a = 1", "there is no name 'a'; allowed: attribute, error, payload, variable"),
        ("paylod.a", "there is no name 'paylod'; did you mean 'payload'?"),
        ("uper('a')", "there is no function 'uper'; did you mean 'upper'?"),
        ("upper()", "upper(text) is given 0 arguments"),
        ("if(true)", "if(condition, value, otherwise) is given 1 arguments"),
        ("'abc", "the text that begins here has no end"),
        ("1 && 2", "column 3: '&' cannot be part of an expression; write 'and'"),
        ("import os", "there is no name 'import'"),
        ("__import__('os')", "there is no function '__import__'"),
        ("payload.__class__.__mro__ ()", "'(' is given where an operator or the end"),
        ("a${payload.id", "has no end; close it with }"),
        ("(" * 60 + "1" + ")" * 60, "nested deeper than 50 levels"),
        ("1" * 101, "at most 100 digits"),
        ("1e999", "too large"),
        ("'" + "x" * 100_001 + "'", "allowed are 100000"),
    ],
)
def test_what_is_not_an_expression_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=r".") as error:
        Expression.read(text)

    assert problem in str(error.value)


def test_members_of_python_objects_cannot_be_reached() -> None:
    assert evaluate("payload.__class__", Message({"a": 1})) is None
    with pytest.raises(ExpressionError, match="which has no members"):
        evaluate("variable.f.__globals__", Message(None, None, {"f": len}))


def test_long_expressions_are_read_and_evaluated() -> None:
    began = time.perf_counter()

    assert evaluate("+".join(["1"] * 5_000)) == 5_000
    assert evaluate(" or ".join(["false"] * 3_000)) is False
    assert evaluate("-" * 99_998 + "1") == 1
    assert evaluate("payload" + ".a" * 9_000, Message({})) is None
    assert len(evaluate("[" + ",".join(["1"] * 9_000) + "]")) == 9_000
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    "text",
    [
        "matches(payload, '(a+)+$')",
        "matches(payload, '(a|aa)*b')",
        "payload like '%a%a%a%a%a%a%a%a%a%b'",
        "regex_replace(payload, '(a*)*b', '') = payload",
    ],
)
def test_no_pattern_takes_exponential_time(text: str) -> None:
    began = time.perf_counter()

    evaluate(text, Message("a" * 20_000 + "!"))

    assert time.perf_counter() - began < 60


@pytest.mark.parametrize(
    "text",
    [
        "replace(payload, 'a', payload)",
        "pad_left('a', 1000000000, ' ')",
        "regex_replace(payload, 'a', payload)",
    ],
)
def test_no_function_makes_a_text_without_bounds(text: str) -> None:
    with pytest.raises(ExpressionError, match="allowed are 33554432"):
        evaluate(text, Message("a" * 100_000))


def test_a_product_of_whole_numbers_has_bounds() -> None:
    with pytest.raises(ExpressionError, match="more than 1024 bits"):
        evaluate(" * ".join(["9999999999999999"] * 30))


def test_a_template_is_a_text_even_of_one_place() -> None:
    assert Template.read("${payload.id}").text(ORDER) == "7"
    assert Template.read("a'b${'}'}").text(ORDER) == "a'b}"


def test_whole_numbers_of_any_length_stay_exact() -> None:
    message = Message(b'{"n": 123456789012345678901234567890}')

    assert evaluate("payload.n + 1", message) == 123456789012345678901234567891
    assert evaluate("to_json(payload.n)", message) == "123456789012345678901234567890"


def test_a_payload_that_is_not_utf8_is_named() -> None:
    with pytest.raises(ExpressionError, match="payload is not JSON"):
        evaluate("payload.id", Message(b"\xff\xfe{"))
    assert evaluate("base64(payload)", Message(b"\xff")) == "/w=="


def test_json_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ExpressionError, match="not JSON"):
        evaluate("payload.a", Message(b'{"a":' * 100_000))
