"""Functions over texts. Regular expressions are RE2's: their time is linear in the text."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.function_table import (
    as_list,
    as_text,
    as_whole,
    function,
    limited,
)
from penstock.flows.expressions.linear_regex import extracted, is_match, replaced
from penstock.flows.expressions.operators import joined
from penstock.flows.expressions.value_text import text_of


@function("text(value)", "a value as text; bytes as UTF-8, objects as JSON", "text(1.5) = '1.5'")
def _text(value: Any) -> str:
    return text_of(value)


@function("upper(text)", "in upper case", "upper('eur') = 'EUR'")
def _upper(value: Any) -> str:
    return as_text(value).upper()


@function("lower(text)", "in lower case", "lower('EUR') = 'eur'")
def _lower(value: Any) -> str:
    return as_text(value).lower()


@function("trim(text)", "without blanks at both ends", "trim('  a b ') = 'a b'")
def _trim(value: Any) -> str:
    return as_text(value).strip()


@function(
    "substring(text, start[, length])",
    "a part; the first character is 1, a negative start counts from the end",
    "substring('orders', 2, 3) = 'rde'",
    "substring('orders', -3) = 'ers'",
)
def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, begin = as_text(value), as_whole(start)
    first = begin - 1 if begin > 0 else max(0, len(text) + begin) if begin < 0 else 0
    if length is None:
        return text[first:]
    return text[first : first + max(0, as_whole(length))]


@function(
    "length(value)",
    "characters of a text, bytes, elements of a list or members of an object",
    "length('abc') = 3 and length([1, 2]) = 2",
)
def _length(value: Any) -> int:
    return len(value) if isinstance(value, list | dict | bytes) else len(as_text(value))


@function(
    "replace(text, part, by)", "every occurrence replaced", "replace('a-b-c', '-', '') = 'abc'"
)
def _replace(value: Any, part: Any, by: Any) -> str:
    text, old, new = as_text(value), as_text(part), as_text(by)
    if not old:
        return text
    limited(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


@function("split(text, separator)", "the parts as a list", "split('a,b', ',') = ['a', 'b']")
def _split(value: Any, separator: Any) -> list[str]:
    if not as_text(separator):
        raise ExpressionError("the separator is empty; give at least one character")
    return as_text(value).split(as_text(separator))


@function("join(list, separator)", "the elements as one text", "join([1, 2], '-') = '1-2'")
def _join(values: Any, separator: Any) -> str | None:
    between = as_text(separator)
    texts = [joined([value]) for value in as_list(values) if value is not None]
    limited(sum(len(text or "") for text in texts) + len(between) * len(texts))
    return between.join(text or "" for text in texts)


@function("starts_with(text, start)", "whether it begins with this", "starts_with('orders', 'or')")
def _starts_with(value: Any, start: Any) -> bool:
    return as_text(value).startswith(as_text(start))


@function("ends_with(text, end)", "whether it ends with this", "ends_with('a.json', '.json')")
def _ends_with(value: Any, end: Any) -> bool:
    return as_text(value).endswith(as_text(end))


@function("position(part, text)", "where a part begins, 0 if nowhere", "position('c', 'abc') = 3")
def _position(part: Any, value: Any) -> int:
    return as_text(value).find(as_text(part)) + 1


@function("pad_left(text, length, with)", "filled up at the left", "pad_left('7', 3, '0') = '007'")
def _pad_left(value: Any, length: Any, fill: Any) -> str:
    text, size, letter = as_text(value), as_whole(length), as_text(fill)
    if len(letter) != 1:
        raise ExpressionError(f"fills up with one character, given {letter!r:.40}")
    limited(size)
    return text.rjust(size, letter)


@function("url_encode(text)", "percent-encoded", "url_encode('a/b c') = 'a%2Fb%20c'")
def _url_encode(value: Any) -> str:
    return quote(as_text(value), safe="")


@function(
    "matches(text, pattern)",
    "whether a regular expression (RE2) is found in it",
    "matches('order-17', '^order-[0-9]+$')",
)
def _matches(value: Any, pattern: Any) -> bool:
    return is_match(as_text(value), as_text(pattern))


@function(
    "regex_extract(text, pattern)",
    "what the first group of a regular expression finds, null if nothing",
    "regex_extract('order-17', 'order-([0-9]+)') = '17'",
)
def _regex_extract(value: Any, pattern: Any) -> str | None:
    return extracted(as_text(value), as_text(pattern))


@function(
    "regex_replace(text, pattern, by)",
    "every place that a regular expression finds replaced",
    "regex_replace('a1b22', '[0-9]+', '#') = 'a#b#'",
)
def _regex_replace(value: Any, pattern: Any, by: Any) -> str:
    text, new = as_text(value), as_text(by)
    limited(len(text) + (len(text) + 1) * len(new) if len(text) * len(new) > 2**20 else 0)
    return replaced(text, as_text(pattern), new)
