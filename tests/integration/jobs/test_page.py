"""The examples of docs/jobs.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock import Connection, jobs
from penstock.testing import eventually, fill

PAGE = Path(__file__).parents[3] / "docs/jobs.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_every_example_of_the_page_runs(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs.sqlite"))
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)
    fill(connection, "trades", ["ACME,12.5", "INIT,7"])
    fill(connection, "trades-json", [{"symbol": "ACME", "price": 12.5}])

    names: dict[str, Any] = {}
    try:
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), names)
            job = names["job"]
            eventually(lambda job=job: len(job.table) > 0, 120)
            assert "ACME" in set(job.table.head()["symbol"])
    finally:
        for job in jobs.jobs():
            job.cancel()
    assert len(BLOCKS) == 2
