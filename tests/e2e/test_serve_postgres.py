"""`penstock serve` with its store in PostgreSQL: up, deployed, restarted, and what others see of it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest
from tests.e2e.test_serve import Serve
from tests.integration.control.conftest import create
from tests.services.postgres import PASSWORD, Postgres

from penstock.control.store import ControlStore
from penstock.control.store.logs import LogLine

DEFINITION = "name: orders\nsource: {kafka: orders}\nsink: discard\n"


def test_deployments_survive_a_restart_of_the_server(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = create(postgres, "served")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    place = f"postgresql://penstock@{postgres.host}:{postgres.port}/served"
    options = ("--workers", 0, "--store", place, "--keys", tmp_path / "keys", "--state", tmp_path)
    file = tmp_path / "orders.yaml"
    file.write_text(DEFINITION)

    first = Serve(tmp_path, *options)
    try:
        first.command("apply", file, "--yes", "--label", "team=a")
        with ControlStore.at(url, tmp_path / "keys") as store:
            store.logs.add("w1", [LogLine("orders", "info", "run_begins", {"lease": 1})])
        assert first.end(signal.SIGTERM) == 0
        second = Serve(tmp_path, *options)
        try:
            found = second.get("orders")
            listed = json.loads(second.command("get", "--json").stdout)
            line = json.loads(second.command("logs", "orders", "-o", "json").stdout)
            events = second.command("events", "orders", "--tail", 1, "--json").stdout
            process = psutil.Process(second.process.pid)
            assert PASSWORD not in str(process.cmdline())
            assert second.end(signal.SIGINT) == 130
        finally:
            second.process.kill()
    finally:
        first.process.kill()

    assert (found["definition"], found["labels"]) == (DEFINITION, {"team": "a"})
    assert [each["name"] for each in listed] == ["orders"]
    assert (line["event"], line["fields"]) == ("run_begins", {"lease": 1})
    assert json.loads(events)["kind"] == "created"
    printed = first.printed() + second.printed()
    assert "Traceback" not in printed
    assert PASSWORD not in printed
