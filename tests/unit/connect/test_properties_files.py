"""Property files are read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connect.properties_files import parse_properties, read_properties
from penstock.connect.worker_settings import WorkerSettings
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


def test_a_worker_needs_a_cluster_and_converters() -> None:
    with pytest.raises(ConfigError, match=r"have no bootstrap.servers"):
        WorkerSettings.of({})
    with pytest.raises(ConfigError, match=r"have no value.converter"):
        WorkerSettings.of({"bootstrap.servers": "b:1", "key.converter": "x"})


def test_every_key_of_a_worker_is_used_or_has_a_note() -> None:
    given = {
        "bootstrap.servers": "b:1",
        "security.protocol": "SSL",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "listeners": "http://localhost:8083, https://localhost:8443",
        "group.id": "connect",
        "config.storage.topic": "connect-configs",
        "consumer.max.poll.records": "5",
        "unheard.of": "x",
    }
    found = WorkerSettings.of(given)
    assert found.connection == {"bootstrap.servers": "b:1", "security.protocol": "SSL"}
    assert found.converters["value.converter.schemas.enable"] == "false"
    assert found.listeners == ("http://localhost:8083", "https://localhost:8443")
    assert found.notes["unheard.of"] == "this key is not known, and has no effect"
    used = {*found.connection, *found.converters, "listeners"}
    assert used | found.notes.keys() == given.keys()
