"""Workers, probes, metrics, samples, and the page of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import SPEC, Api

from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind, WorkerUsage
from penstock.control.store.samples import Sample
from penstock.engine import Done
from penstock.engine.restart_reason import RestartReason
from penstock.errors import TransientError
from penstock.pipeline import Mark
from penstock.server.connect.connect_api import HEALTHY

Put = Callable[..., dict[str, Any]]


def test_workers_are_listed_and_drained(client: TestClient, store: ControlStore) -> None:
    store.workers.join("w1", "host-a", 12, capacity=2)
    store.deployments.put("orders", Kind.PIPELINE, SPEC.format("orders"), by="ann")
    store.leases.claim("orders", "w1")
    (worker,) = client.get("/api/v1/workers").json()["items"]
    drained = client.post("/api/v1/workers/w1/drain")

    assert (worker["id"], worker["alive"], worker["runs"], worker["draining"]) == (
        "w1",
        True,
        1,
        False,
    )
    assert drained.status_code == 202
    assert store.workers.all()[0].draining
    assert store.audit.before()[0].action == "worker.drain"
    for wrong in ("w2", "w%00"):
        reply = client.post(f"/api/v1/workers/{wrong}/drain")
        assert (reply.status_code, "there is no worker" in reply.text) == (404, True)


def test_a_server_is_ready_with_a_worker_or_when_it_needs_none(
    api: Api, store: ControlStore
) -> None:
    assert api().get("/health", headers={"Host": "10.0.0.1:8080"}).json() == HEALTHY
    assert api().get("/ready").status_code == 503
    assert api(workers=0).get("/ready").json() == {"status": "ready", "workers": 0}
    store.workers.join("w1", "host-a", 12)
    assert api().get("/ready").json() == {"status": "ready", "workers": 1}


def test_a_server_without_its_store_is_not_ready_and_hides_its_address(
    client: TestClient, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> float:
        raise TransientError("the store postgresql://secret-host/x cannot be reached")

    monkeypatch.setattr(store.database, "time", away)
    reply = client.get("/ready")

    assert (reply.status_code, reply.json()["detail"]) == (503, "the store cannot be reached")


def run(store: ControlStore, name: str) -> None:
    claimed = store.leases.claim(name, "w1")
    assert claimed
    done = Done(Mark(claimed.token, 0, 0), records=10, rows=9, failed=1, seconds=1.0)
    store.counters.count(name, claimed.token, done)
    store.leases.report(name, "w1", claimed.token, "RUNNING", restarts=2)
    store.samples.add({name: Sample(batches=1, records=10, rows=9, failed=1, lag=7)})


def test_metrics_are_in_the_text_format(client: TestClient, store: ControlStore, put: Put) -> None:
    put("orders")
    run(store, "orders")
    store.workers.join('w"1\\', "host\na", 1)
    text = client.get("/metrics").text

    assert 'penstock_deployment_records_total{deployment="orders"} 10.0' in text
    assert 'penstock_deployment_failed_total{deployment="orders"} 1.0' in text
    assert 'penstock_deployment_lag{deployment="orders"} 7.0' in text
    assert 'penstock_deployment_restarts{deployment="orders"} 2.0' in text
    assert 'penstock_deployment_state{deployment="orders",state="RUNNING"} 1.0' in text
    assert 'penstock_worker_alive{worker="w\\"1\\\\",host="host\\na"} 1.0' in text
    value = r"[0-9.e+-]+"
    line = re.compile(rf'(# (HELP|TYPE) .+|\w+\{{(\w+="([^"\\\n]|\\.)*",?)+\}} {value})')
    assert [each for each in text.splitlines() if not line.fullmatch(each)] == []


def test_metrics_of_partitions_durations_restarts_and_usage(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put("orders")
    store.workers.join("w1", "host-a", 12)
    run(store, "orders")
    store.leases.renew("w1")
    store.partition_lag.put("w1", {"orders": {"orders-eu-3": 7}})
    store.restarts.add({("orders", RestartReason.JAVA_DIED): 2})
    before = client.get("/metrics").text
    store.workers.measured("w1", WorkerUsage(1000, 2.5, 1, 300, 500))
    text = client.get("/metrics").text

    lag = (
        'penstock_deployment_partition_lag{deployment="orders",topic="orders-eu",partition="3"} 7.0'
    )
    seconds = "penstock_deployment_batch_duration_seconds"
    restarts = "penstock_deployment_restarts_total"
    worker = 'worker="w1",host="host-a"'
    for line in (
        lag,
        f'{seconds}_bucket{{deployment="orders",le="0.5"}} 0.0',
        f'{seconds}_bucket{{deployment="orders",le="1.0"}} 1.0',
        f'{seconds}_bucket{{deployment="orders",le="+Inf"}} 1.0',
        f'{seconds}_sum{{deployment="orders"}} 1.0',
        f'{seconds}_count{{deployment="orders"}} 1.0',
        f'{restarts}{{deployment="orders",reason="java_died"}} 2.0',
        f'{restarts}{{deployment="orders",reason="failed"}} 0.0',
        f"penstock_worker_lease_renewals_total{{{worker}}} 1.0",
        f"penstock_worker_running_queries{{{worker}}} 1.0",
        f"penstock_worker_cpu_seconds_total{{{worker}}} 2.5",
        f"penstock_worker_resident_memory_bytes{{{worker}}} 1000.0",
        f"penstock_worker_heap_used_bytes{{{worker}}} 300.0",
        f"penstock_worker_heap_max_bytes{{{worker}}} 500.0",
    ):
        assert line in text.splitlines()
    assert "penstock_worker_heap_used_bytes{" not in before


def test_the_guide_has_a_table_of_all_metrics(client: TestClient) -> None:
    exported = re.findall(r"^# TYPE (\S+) ", client.get("/metrics").text, re.M)
    guide = Path(__file__).parents[3] / "docs/control-plane.md"
    listed = re.findall(r"^\| `(penstock_\w+)` \|", guide.read_text(), re.M)

    assert sorted(exported) == sorted(listed)


def test_metrics_have_only_what_the_caller_may_see(
    api: Api, people: None, put: Put, store: ControlStore
) -> None:
    put("ours", team="a")
    put("theirs", team="b")
    run(store, "theirs")
    store.partition_lag.put("w1", {"theirs": {"theirs-0": 7}})
    store.restarts.add({("theirs", RestartReason.FAILED): 1})
    text = api("tom").get("/metrics").text

    assert ("ours" in text, "theirs" in text, "penstock_worker" in text) == (True, False, False)


def test_counters_and_samples_are_shown(client: TestClient, store: ControlStore, put: Put) -> None:
    put("orders")
    run(store, "orders")
    counters = client.get("/api/v1/deployments/orders/counters").json()
    samples = client.get("/api/v1/deployments/orders/samples?resolution=60").json()
    shown = client.get("/api/v1/deployments/orders").json()

    assert (counters["records"], counters["rows"], counters["failed"]) == (10, 9, 1)
    assert samples["resolution"] == 60
    assert [(point["records"], point["most_lag"]) for point in samples["points"]] == [(10, 7)]
    assert (shown["run"]["state"], shown["run"]["worker"], shown["run"]["held"]) == (
        "RUNNING",
        "w1",
        True,
    )
    assert client.get("/api/v1/deployments/orders/samples?since=9e9").json()["points"] == []


def test_the_page_of_the_api_has_all_routes_and_requests_nothing(client: TestClient) -> None:
    page = client.get("/api/docs").text
    paths = client.get("/api/v1/openapi.json").json()["paths"]

    found: list[tuple[str, str]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            found.extend((tag, value) for name, value in attrs if name in ("src", "href", "action"))

    Links().feed(page)
    assert found == [("a", "/api/v1/openapi.json")]
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    assert len(paths) > 20
    assert [path for path in paths if path not in page] == []
    assert "application/yaml" in page


def test_unknown_paths_and_methods_are_problems(client: TestClient) -> None:
    for method, path, status in [
        ("GET", "/api/v1/nothing", 404),
        ("DELETE", "/api/v1/me", 405),
        ("GET", "/docs", 404),
        ("GET", "/api/v1/deployments/", 404),
    ]:
        reply = client.request(method, path)
        assert (reply.status_code, reply.headers["content-type"]) == (
            status,
            "application/problem+json",
        )
        assert "/api/docs has them all" in reply.json()["detail"]
