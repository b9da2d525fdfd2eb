"""What kcctl, the UI of kafbat, AKHQ and Redpanda Console send, in order, and what they read of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.contract.connect_rest.store_worker import StoreWorker
from tests.services.penstock_server import PenstockServer

VALIDATE = "/connector-plugins/FileStreamSink/config/validate"


class Client:
    """Sends requests with the headers of one client; the worker acts after each."""

    def __init__(self, server: PenstockServer, **headers: str) -> None:
        self._http = httpx.Client(base_url=server.url, headers=headers)
        self._worker = StoreWorker(server.store, failing={"failing"})

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        reply = self._http.request(method, path, json=body)
        assert reply.status_code == status, reply.text
        self._worker.work()
        return reply.json() if reply.content else None

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def connectors(penstock: PenstockServer, unique: str, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A sink by its name, which is removed at the end."""
    config = {"connector.class": "FileStreamSink", "topics": unique, "file": str(tmp_path / "out")}
    yield {"name": f"{unique} sink", "config": config}
    with httpx.Client(base_url=penstock.url) as client:
        client.delete(f"/connectors/{unique} sink")
    StoreWorker(penstock.store, failing=()).work()


def states(status: dict[str, Any]) -> tuple[str, list[str]]:
    assert status["connector"]["worker_id"]
    return status["connector"]["state"], [task["state"] for task in status["tasks"]]


def test_kcctl(penstock: PenstockServer, connectors: dict[str, Any]) -> None:
    ask = Client(penstock, accept="application/json")
    name, config = connectors["name"], connectors["config"]
    at = f"/connectors/{name}"
    info = ask("GET", "/")
    assert [*map(int, info["version"].split("."))] >= [3, 6]
    assert info["kafka_cluster_id"]
    assert name not in ask("GET", "/connectors/")
    wrong = ask(
        "POST", "/connectors/", {"name": name, "config": {**config, "tasks.max": "x"}}, status=400
    )
    head, *errors, foot = wrong["message"].split("\n")
    assert (head.rpartition("following ")[2], len(errors)) == ("2 error(s):", 2)
    assert foot.startswith("You can also find the above list of errors")
    assert ask("POST", "/connectors/", connectors, status=201)["type"] == "sink"
    assert "already exists" in ask("POST", "/connectors/", connectors, status=409)["message"]
    assert name in ask("GET", "/connectors/")
    assert ask("GET", at)["tasks"] == [{"connector": name, "task": 0}]
    assert states(ask("GET", f"{at}/status")) == ("RUNNING", ["RUNNING"])
    assert ask("GET", f"{at}/config")["topics"] == config["topics"]
    assert ask("GET", f"{at}/topics")[name]["topics"] == [config["topics"]]
    assert ask("PUT", f"{at}/config", {**config, "tasks.max": "2"})["name"] == name
    assert len(ask("GET", f"{at}/tasks")) == 2
    assert ask("PATCH", f"{at}/config", {"tasks.max": None})["config"].get("tasks.max") is None
    ask("PUT", f"{at}/pause", status=202)
    assert states(ask("GET", f"{at}/status")) == ("PAUSED", ["PAUSED"])
    ask("PUT", f"{at}/resume", status=202)
    ask("POST", f"{at}/restart", status=204)
    ask("POST", f"{at}/tasks/0/restart", status=204)
    ask("PUT", f"{at}/stop", status=204)
    assert ask("GET", f"{at}/offsets") == {"offsets": []}
    assert {"class", "type", "version"} == ask("GET", "/connector-plugins?connectorsOnly=false")[
        0
    ].keys()
    assert ask("GET", "/connector-plugins/FileStreamSink/config")[0]["name"] == "file"
    assert ask("GET", "/admin/loggers")["root"]["level"]
    assert ask("PUT", "/admin/loggers/org.kcctl", {"level": "DEBUG"}) == ["org.kcctl"]
    assert ask("GET", "/admin/loggers/org.kcctl")["level"] == "DEBUG"
    ask("DELETE", at, status=204)
    assert ask("GET", at, status=404)["message"] == f"Connector {name} not found"
    ask.close()


def test_the_ui_of_kafbat(penstock: PenstockServer, connectors: dict[str, Any]) -> None:
    ask = Client(penstock)
    name, at = connectors["name"], f"/connectors/{connectors['name']}"
    checked = ask("PUT", VALIDATE, {**connectors["config"], "name": name})
    assert (checked["error_count"], checked["name"]) == (0, "FileStreamSink")
    for each in checked["configs"]:
        definition = each["definition"]
        assert definition["width"] in ("NONE", "SHORT", "MEDIUM", "LONG")
        assert definition["importance"] in ("HIGH", "MEDIUM", "LOW")
        assert definition["type"] in (
            "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD",
        )  # fmt: skip
    ask("POST", "/connectors", connectors, status=201)
    found = ask("GET", "/connectors?expand=status&expand=info")[name]
    assert found["info"]["config"]["name"] == name
    assert states(found["status"]) == ("RUNNING", ["RUNNING"])
    (task,) = ask("GET", f"{at}/tasks")
    assert task["id"] == {"connector": name, "task": 0}
    assert task["config"]["task.class"].endswith("FileStreamSinkTask")
    assert ask("GET", f"{at}/topics")[name]["topics"] == [connectors["config"]["topics"]]
    for query in ("false&onlyFailed=false", "true&onlyFailed=false", "true&onlyFailed=true"):
        status = 204 if query.startswith("false") else 202
        shown = ask("POST", f"{at}/restart?includeTasks={query}", status=status)
        assert shown is None or shown["name"] == name
    assert "STOPPED state" in ask("DELETE", f"{at}/offsets", status=400)["message"]
    ask("PUT", f"{at}/stop", status=204)
    assert ask("DELETE", f"{at}/offsets")["message"].endswith("reset successfully")
    assert ask("GET", f"{at}/offsets")["offsets"] == []
    assert {each["type"] for each in ask("GET", "/connector-plugins")} == {"source", "sink"}
    ask("DELETE", at, status=204)
    ask.close()


def test_akhq(penstock: PenstockServer, connectors: dict[str, Any]) -> None:
    ask = Client(penstock, **{"content-type": "application/json", "accept": "application/json"})
    name, at = connectors["name"], f"/connectors/{connectors['name']}"
    ask("POST", "/connectors", connectors, status=201)
    both = ask("GET", "/connectors?expand=info&expand=status")[name]
    assert both.keys() == {"info", "status"}
    assert ask("GET", at)["type"] == ask("GET", f"{at}/status")["type"] == "sink"
    assert (
        ask("PUT", f"{at}/config", {**connectors["config"], "tasks.max": "3"})["config"][
            "tasks.max"
        ]
        == "3"
    )
    for change in ("pause", "resume"):
        ask("PUT", f"{at}/{change}", status=202)
    ask("POST", f"{at}/restart", status=204)
    ask("POST", f"{at}/tasks/2/restart", status=204)
    assert any(
        each["class"].endswith("FileStreamSinkConnector")
        for each in ask("GET", "/connector-plugins")
    )
    ask("DELETE", at, status=204)
    assert ask("GET", f"{at}/status", status=404)["error_code"] == 404
    ask.close()


def test_redpanda_console(penstock: PenstockServer, connectors: dict[str, Any]) -> None:
    ask = Client(penstock, accept="application/json", **{"content-type": "application/json"})
    name, at = connectors["name"], f"/connectors/{connectors['name']}"
    assert ask("GET", "/").keys() == {"version", "commit", "kafka_cluster_id"}
    assert len(ask("GET", "/connector-plugins")) >= 2
    assert ask("PUT", VALIDATE, {"connector.class": "FileStreamSink"})["error_count"] >= 2
    ask("POST", "/connectors", connectors, status=201)
    assert (
        states(ask("GET", "/connectors?expand=status&expand=info")[name]["status"])[0] == "RUNNING"
    )
    ask("PUT", f"{at}/config", {**connectors["config"], "tasks.max": "2"})
    shown = ask("POST", f"{at}/restart?includeTasks=true&onlyFailed=false", status=202)
    assert states(shown) == ("RESTARTING", ["RESTARTING"] * 2)
    assert states(ask("GET", f"{at}/status")) == ("RUNNING", ["RUNNING"] * 2)
    assert ask("GET", f"{at}/topics")[name]["topics"] == [connectors["config"]["topics"]]
    ask("PUT", f"{at}/topics/reset", status=202)
    assert ask("GET", f"{at}/topics") == {name: {"topics": []}}
    ask("PUT", f"{at}/pause", status=202)
    ask("PUT", f"{at}/resume", status=202)
    ask("POST", f"{at}/tasks/1/restart", status=204)
    ask("PUT", f"{at}/stop", status=204)
    assert states(ask("GET", f"{at}/status")) == ("STOPPED", [])
    ask("DELETE", at, status=204)
    assert ask("GET", at, status=404)["message"] == f"Connector {name} not found"
    ask.close()
