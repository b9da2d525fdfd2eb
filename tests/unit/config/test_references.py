"""References to the environment and to files, in nested data."""

import pytest

from penstock.config import resolve_references
from penstock.errors import ConfigError


def test_variables_and_files_are_filled_in_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKER", "kafka-1")
    (tmp_path / "password").write_text("hunter2\n")
    data = {
        "a": ["${env:BROKER}:9092,${env:BROKER}:9093"],
        "b": {"password": f"${{file:{tmp_path / 'password'}}}"},
        "n": 5,
        "t": True,
        "none": None,
    }
    assert resolve_references(data) == {
        "a": ["kafka-1:9092,kafka-1:9093"],
        "b": {"password": "hunter2"},
        "n": 5,
        "t": True,
        "none": None,
    }
    assert data["a"] == ["${env:BROKER}:9092,${env:BROKER}:9093"]


def test_a_default_stands_in_for_a_missing_or_empty_variable(monkeypatch):
    monkeypatch.setenv("EMPTY", "")
    assert resolve_references("${env:NO_SUCH:-x:y}") == "x:y"
    assert resolve_references("${env:NO_SUCH:-}") == ""
    assert resolve_references("${env:EMPTY:-x}") == "x"
    assert resolve_references("${env:EMPTY}") == ""


def test_what_is_filled_in_is_not_read_again(monkeypatch):
    monkeypatch.setenv("ODD", "${env:OTHER}")
    assert resolve_references("${env:ODD}") == "${env:OTHER}"


@pytest.mark.parametrize(
    ("text", "plain"),
    [("$${env:X}", "${env:X}"), ("a$b", "a$b"), ("$$", "$$"), ("${", "${"), ("a}${", "a}${")],
)
def test_dollars_that_are_no_reference_stay(text, plain):
    assert resolve_references(text) == plain


def test_relative_files_are_looked_up_from_the_base_and_only_the_line_end_goes(tmp_path):
    (tmp_path / "pw").write_text(" a b \r\n")
    assert resolve_references("${file:pw}", tmp_path) == " a b "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NO_SUCH}", "the environment variable NO_SUCH is not set; set it, or write"),
        ("${ENV:X}", "${ENV:X} is not a reference; allowed: ${env:NAME}"),
        ("${X}", "${X} is not a reference"),
        ("${env:}", "${env:} is not a reference"),
        ("${file:}", "${file:} is not a reference"),
    ],
)
def test_a_reference_to_nothing_is_named(text, message):
    with pytest.raises(ConfigError) as error:
        resolve_references({"x": [text]})
    assert message in str(error.value)
    assert str(error.value).startswith("x: ${")


def test_a_secret_that_looks_like_a_reference_is_not_shown():
    with pytest.raises(ConfigError) as error:
        resolve_references({"sasl.password": "a${hunter2}b"})
    assert str(error.value).startswith("sasl.password: ${...} is not a reference")
    assert "hunter2" not in str(error.value)


def test_a_missing_file_is_named_with_its_whole_path(tmp_path):
    with pytest.raises(ConfigError) as error:
        resolve_references("${file:gone}", tmp_path)
    expected = f"${{file:gone}}: cannot read {tmp_path / 'gone'}: No such file or directory"
    assert str(error.value) == expected


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        resolve_references("${file:bin}", tmp_path)
