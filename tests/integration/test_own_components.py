"""A decode, a step and a sink of another package, in a pipeline over a real topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.own_package import installed

from penstock import Connection, start
from penstock.testing import fill, read_all


def test_a_pipeline_runs_with_components_of_another_package(
    connection: Connection,
    topic: Any,
    pipeline: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(connection, topic(), [b"1;ada", b"2;grace", b"3", b"4;x;\xff"])
    with installed(tmp_path, monkeypatch):
        definition = pipeline(
            source={"kafka": topic()},
            decode={"fields": "id, name"},
            steps=[{"mask": {"columns": "name", "keep": 2}}],
            sink={"lines": str(tmp_path / "people.json")},
        )
        with start(definition, once=True) as running:
            assert running.wait(120)
            progress = running.progress()

    lines = (tmp_path / "people.json").read_text().splitlines()
    assert sorted(map(json.loads, lines), key=lambda row: row["id"]) == [
        {"id": "1", "name": "*da"},
        {"id": "2", "name": "***ce"},
    ]
    assert (progress.records, progress.rows, progress.failed) == (4, 2, 2)
    letters = read_all(connection, f"{definition.name}.dead-letters")
    assert {letter.value: dict(letter.headers)["penstock.error_type"] for letter in letters} == {
        b"3": b"WrongNumberOfFields",
        b"4;x;\xff": b"WrongNumberOfFields",
    }
