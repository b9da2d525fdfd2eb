"""Files of connectors: JSON and properties, as a worker of Connect reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.connect.connector_files import read_connector_file
from penstock.errors import ConfigError

CONFIG = {"connector.class": "FileStreamSink", "file": "/out", "topics": "a"}


@pytest.mark.parametrize(
    ("name", "text", "state"),
    [
        ("c.json", json.dumps({"name": "c", "config": CONFIG}), None),
        (
            "c.json",
            json.dumps({"name": "c", "config": CONFIG, "initial_state": "paused"}),
            "PAUSED",
        ),
        ("c.json", json.dumps({"name": "c", **CONFIG}), None),
        ("c.conf", "\n" + json.dumps({"name": "c", **CONFIG}), None),
        ("c.properties", "\n".join(f"{k}={v}" for k, v in {"name": "c", **CONFIG}.items()), None),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str, state: str | None) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = read_connector_file(path)
    assert (found.name, found.config, found.initial_state) == ("c", {**CONFIG, "name": "c"}, state)


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}])
def test_a_value_that_is_no_text_is_refused(tmp_path: Path, value: object) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"name": "c", "config": {**CONFIG, "topics": value}}))
    with pytest.raises(
        ConfigError, match=r"'topics' of .* allowed: a text, a number, true or false"
    ):
        read_connector_file(path)


def test_an_unknown_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"name": "c", "config": CONFIG, "initial_state": "asleep"}))
    with pytest.raises(ConfigError, match="'asleep'; allowed: RUNNING, PAUSED, STOPPED"):
        read_connector_file(path)
