"""Property files are read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connect.properties_files import (
    parse_properties,
    read_properties,
    read_property_file,
)
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1\r\nb = 2\rc:3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("! note\n  # note\n\n a = 1", {"a": "1"}),
        ("a=b=c", {"a": "b=c"}),
        ("a = with blanks  ", {"a": "with blanks  "}),
        ("a\\ b=1\na\\:b=2\n\\=x=3", {"a b": "1", "a:b": "2", "=x": "3"}),
        ("path=C:\\\\data\nline=one\\ntwo", {"path": "C:\\data", "line": "one\ntwo"}),
        ("a=1,\\\n  2,\\\n  # no comment\nb=", {"a": "1,2,# no comment", "b": ""}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=\\u00e4", {"a": "ä"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_texts(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_a_file_of_java_8_and_one_that_is_none(tmp_path: Path) -> None:
    old = tmp_path / "old.properties"
    old.write_bytes("a=\xe4".encode("latin-1"))
    assert read_properties(old) == {"a": "ä"}
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"wrong.properties: a \\u is followed by four"):
        read_properties(wrong)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_properties(tmp_path / "none.properties")


def test_a_key_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("# first\na = 1\n\nb = 2,\\\n  3\nc = 4\na = 5\n")
    found = read_property_file(path)
    assert found.values == {"a": "5", "b": "2,3", "c": "4"}
    assert found.lines == {"a": 7, "b": 4, "c": 6}
    assert str(found.wrong("b", "no")) == f"{path}, line 4: no"
    assert found.where("unknown") == str(path)
