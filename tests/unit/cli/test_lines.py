import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.lines import Draft, LineReader, as_document, header
from penstock.errors import ConfigError, RecordError
from penstock.record import Record


def drafts(lines: list[bytes], **how: object) -> list[Draft]:
    return list(LineReader(**how).drafts(lines))  # type: ignore[arg-type]


def test_a_plain_line_is_the_value_as_it_stands() -> None:
    assert drafts([b"one", b"", b" two\r"]) == [
        Draft(None, b"one"),
        Draft(None, b""),
        Draft(None, b" two\r"),
    ]


def test_the_separator_splits_at_its_first_place() -> None:
    assert drafts([b"k::v::w"], separator="::") == [Draft(b"k", b"v::w")]


def test_a_line_without_the_separator_is_refused_by_its_number() -> None:
    reader = LineReader(separator=":").drafts([b"a:1", b"b2"])
    assert next(reader) == Draft(b"a", b"1")
    with pytest.raises(RecordError, match=r"line 2: there is no ':'.*the 1 before it were sent"):
        next(reader)


def test_key_and_headers_from_options_go_on_every_record() -> None:
    given_headers = (header("source=test"),)
    assert drafts([b"v"], key="k", headers=given_headers) == [
        Draft(b"k", b"v", (("source", b"test"),))
    ]


@pytest.mark.parametrize(
    ("line", "draft"),
    [
        (b'{"key": "k", "value": "v"}', Draft(b"k", b"v")),
        (b'{"value": {"a": [1, null]}}', Draft(None, b'{"a":[1,null]}')),
        (b'{"key": 5, "value": null}', Draft(b"5", None)),
        (b'{"value_base64": "/wA="}', Draft(None, b"\xff\x00")),
        (b'{"value": "v", "timestamp": 5}', Draft(None, b"v", (), 5)),
        (
            b'{"value": "v", "headers": {"a": "1", "b": ["2", null, {"base64": "/w=="}]}}',
            Draft(None, b"v", (("a", b"1"), ("b", b"2"), ("b", None), ("b", b"\xff"))),
        ),
        (b'{"value": "v", "topic": "old", "partition": 3, "offset": 9}', Draft(None, b"v")),
    ],
)
def test_a_json_line_says_key_value_and_headers(line: bytes, draft: Draft) -> None:
    assert drafts([line], as_json=True) == [draft]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"valeu": 1}', "did you mean 'value'"),
        (b'{"value_base64": "!"}', "value_base64 is not base64"),
        (b'{"headers": [1]}', "headers are not a JSON object"),
        (b'{"timestamp": "now"}', "timestamp 'now'"),
        (b'{"timestamp": 0}', "timestamp 0"),
        (b'{"timestamp": true}', "timestamp True"),
    ],
)
def test_a_bad_json_line_is_refused_with_its_number(line: bytes, problem: str) -> None:
    with pytest.raises(RecordError, match=r"^line 1: ") as caught:
        drafts([line], as_json=True)
    assert problem in str(caught.value)


@pytest.mark.parametrize("how", [{"as_json": True}, {"key": "k"}])
def test_two_ways_to_say_the_key_are_refused(how: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="--key-separator"):
        LineReader(separator=":", **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["novalue", "=x", ""])
def test_a_header_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        header(text)


@given(
    key=st.none() | st.binary(max_size=20),
    value=st.none() | st.binary(max_size=20),
    headers=st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.binary(max_size=5))),
)
def test_a_record_printed_as_json_and_read_back_is_the_same(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    import orjson

    # the order of different names is not kept in a JSON object, that of one name is
    headers.sort(key=lambda pair: pair[0])
    record = Record.of("t", 1, 2, key=key, value=value, timestamp=3, headers=tuple(headers))
    line = orjson.dumps(as_document(record))
    assert drafts([line], as_json=True) == [Draft(key, value, tuple(headers), 3)]
