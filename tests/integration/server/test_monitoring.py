"""The files of examples/monitoring, with a real Prometheus that scrapes a real server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.services.penstock_server import PASSWORD, PenstockServer
from tests.services.prometheus import Prometheus, promtool

from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind, WorkerUsage
from penstock.control.store.samples import Sample
from penstock.engine import Done
from penstock.engine.restart_reason import RestartReason
from penstock.pipeline import Mark
from penstock.testing import eventually

FILES = Path(__file__).parents[3] / "examples/monitoring"
NAME = 'orders "eu" {é}\u2028, 1'
DASHBOARD = json.loads((FILES / "dashboard.json").read_text())
RULES = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]


def panel_expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def run_some(store: ControlStore) -> None:
    """Leave in the store what a worker with one deployment reports."""
    store.deployments.put(NAME, Kind.PIPELINE, "name: x", by="ann")
    store.workers.join("w1", "host-a", 12)
    claimed = store.leases.claim(NAME, "w1")
    assert claimed
    for batch, seconds in enumerate([0.05, 2.0, 400.0]):
        done = Done(Mark(claimed.token, batch, 0), 10, 9, 1, seconds, lost=1)
        store.counters.count(NAME, claimed.token, done)
    store.leases.report(NAME, "w1", claimed.token, "RUNNING", restarts=2)
    store.leases.renew("w1", 0.5)
    store.samples.add({NAME: Sample(batches=3, records=30, rows=27, failed=3, lost=3, lag=7)})
    store.partition_lag.put("w1", {NAME: {"orders-0": 3, "orders-1": 4}})
    store.restarts.add({(NAME, RestartReason.JAVA_DIED): 2})
    store.workers.measured("w1", WorkerUsage(1000, 2.5, 1, 300, 500))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    folder, nothing = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("nothing")
    with PenstockServer(folder, nothing, login=True) as server:
        server.store.users.add("prometheus", PASSWORD, ["viewer"])
        run_some(server.store)
        yield server


@pytest.fixture(scope="module")
def text(server: PenstockServer) -> str:
    reply = httpx.get(f"{server.url}/metrics", auth=("prometheus", PASSWORD))
    assert reply.status_code == 200
    return reply.text


@pytest.fixture(scope="module")
def prometheus(server: PenstockServer) -> Iterator[Prometheus]:
    """The example's configuration, with another address and shorter intervals."""
    token, _ = server.store.tokens.create("prometheus", "scraping", grants=["viewer"], seconds=None)
    config = yaml.safe_load((FILES / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (job,) = config["scrape_configs"]
    job["scheme"] = "http"
    job["static_configs"] = [{"targets": [f"127.0.0.1:{server.port}"]}]
    files = {"penstock.token": token, "alerts.yml": (FILES / "alerts.yml").read_text()}
    with Prometheus(config, files) as one:
        one.start()
        yield one
        one.stop()


def health(prometheus: Prometheus) -> list[tuple[str, str]]:
    return [
        (each["health"], each["lastError"]) for each in prometheus.get("targets")["activeTargets"]
    ]


def test_the_server_is_scraped_with_a_token_of_a_file(prometheus: Prometheus) -> None:
    eventually(lambda: health(prometheus) == [("up", "")], timeout=30)
    (lag,) = prometheus.query("penstock_deployment_partition_lag{partition='1'}")
    (slow,) = prometheus.query("penstock_deployment_batch_duration_seconds_bucket{le='+Inf'}")

    assert (lag["metric"]["deployment"], lag["metric"]["topic"]) == (NAME, "orders")
    assert (lag["value"][1], slow["value"][1]) == ("4", "3")


def test_every_metric_of_dashboard_and_alerts_exists(prometheus: Prometheus, text: str) -> None:
    used = {
        name
        for expression in [*panel_expressions(), *(rule["expr"] for rule in RULES)]
        for name in re.findall(r"\bpenstock_\w+", expression)
    }
    exported = set(re.findall(r"^(penstock_\w+)\{", text, re.M))

    def known() -> set[str]:
        return set(prometheus.get("label/__name__/values"))

    eventually(lambda: used <= known(), timeout=30)
    # Nothing is exported that the dashboard does not show.
    counted = {name for name in exported if not name.endswith(("_bucket", "_sum", "_count"))}
    assert {*counted, "penstock_deployment_batch_duration_seconds_bucket"} <= used | {
        "penstock_worker_alive"
    }


@pytest.mark.by_turns
@pytest.mark.parametrize("expression", panel_expressions())
def test_every_panel_has_an_expression_that_prometheus_evaluates(
    prometheus: Prometheus, expression: str
) -> None:
    asked = expression.replace("$deployment", ".*")
    if "rate(" in asked or "increase(" in asked:
        prometheus.query(asked)  # it needs two scrapes to have a value
    else:
        eventually(lambda: prometheus.query(asked), timeout=30)


def test_every_alert_is_evaluated(prometheus: Prometheus) -> None:
    def states() -> list[tuple[str, str]]:
        (group,) = prometheus.get("rules")["groups"]
        return [(rule["name"], rule["health"]) for rule in group["rules"]]

    wanted = [(rule["alert"], "ok") for rule in RULES]
    eventually(lambda: states() == wanted, timeout=30)


def test_the_files_are_valid(tmp_path: Path) -> None:
    for file in ("prometheus.yml", "alerts.yml"):
        (tmp_path / file).write_text((FILES / file).read_text())
    (tmp_path / "penstock.token").write_text("a token")

    assert "SUCCESS" in promtool("check", "config", tmp_path / "prometheus.yml")
    assert f"{len(RULES)} rules found" in promtool("check", "rules", FILES / "alerts.yml")


def test_each_alert_fires_and_does_not_fire() -> None:
    assert "SUCCESS" in promtool("test", "rules", FILES / "alerts.test.yml")
    tests: list[dict[str, Any]] = yaml.safe_load((FILES / "alerts.test.yml").read_text())["tests"]
    checked = [
        (rule["alertname"], bool(rule.get("exp_alerts")))
        for test in tests
        for rule in test["alert_rule_test"]
    ]
    assert sorted(checked) == sorted((r["alert"], fires) for r in RULES for fires in (True, False))


def test_promtool_accepts_the_metrics(text: str) -> None:
    assert promtool("check", "metrics", given=text) == ""


def test_a_store_without_anything_has_valid_metrics(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with PenstockServer(tmp_path, tmp_path / "empty") as server:
        text = httpx.get(f"{server.url}/metrics").text
    promtool("check", "metrics", given=text)
