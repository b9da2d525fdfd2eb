"""Flows as deployments: stored, checked and shown as pipelines are, and nothing of them is run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import SPEC, YAML, Api

from penstock.config import Connection
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.server.definition_check import checked_definition
from penstock.server.kafka import dead_letter_topic
from penstock.worker.starting import Starting

ONE = "/api/v1/deployments/orders"
FLOW = """\
# what the team owns
name: orders
connection: {addresses: "kafka:9092"}
trigger:
  rabbitmq: {url: "amqp://app@mq:5672", password: "${env:MQ_PASSWORD}", queues: orders}
steps:
  - http:
      url: https://crm.example.com/customers/${payload.customer}
      auth: {bearer: {token: hunter2hunter2}}
  - publish:
      kafka: {topic: "orders-${payload.region}", key: "${payload.id}"}
"""


def test_a_flow_is_recognized_stored_and_shown(client: TestClient, store: ControlStore) -> None:
    first = client.put(ONE, content=FLOW, headers=YAML)
    again = client.put(ONE, content=first.json()["definition"], headers=YAML)
    stored = store.deployments.find("orders")

    assert first.status_code == 201, first.text
    assert first.json()["kind"] == "flow"
    assert "hunter2" not in first.text + stored.spec
    assert 'key: "${payload.id}"' in first.json()["definition"]
    assert "# what the team owns" in first.json()["definition"]
    assert again.json()["generation"] == 1, "the masked secret is the stored one"
    for kind, names in (("flow", ["orders"]), ("pipeline", [])):
        listed = client.get("/api/v1/deployments", params={"kind": kind}).json()["items"]
        assert [each["name"] for each in listed] == names


def test_a_worker_gets_the_flow_with_its_secrets_and_its_own_variables(
    client: TestClient, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put(ONE, content=FLOW, headers=YAML)
    monkeypatch.setenv("MQ_PASSWORD", "rabbit-rabbit")

    pipeline = Starting(store, "/states").pipeline(store.deployments.find("orders"))

    (step,) = pipeline.steps
    source = pipeline.imported().source
    assert (pipeline.name, pipeline.state) == ("orders", "/states")
    assert source.named_topics() == ["orders.in"]
    assert source.password.get_secret_value() == "rabbit-rabbit"  # type: ignore[attr-defined]
    token = step.flow.steps[0].kind.auth.bearer.token  # type: ignore[attr-defined]
    assert token.get_secret_value() == "hunter2hunter2"


@pytest.mark.parametrize("action", ["pause", "resume", "stop", "restart"])
def test_a_flow_follows_what_is_asked_for(client: TestClient, action: str) -> None:
    client.put(ONE, content=FLOW, headers=YAML)

    reply = client.post(f"{ONE}/{action}")

    wanted = {"pause": "paused", "stop": "stopped"}.get(action, "running")
    assert (reply.status_code, reply.json()["desired"]) == (200, wanted)


def test_every_problem_of_a_flow_has_its_line(client: TestClient) -> None:
    wrong = FLOW.replace("queues", "queue").replace("- publish", "- publsh")

    reply = client.put(ONE, content=wrong, headers=YAML)

    problems = {each["where"]: each["line"] for each in reply.json()["problems"]}
    assert reply.status_code == 422
    assert "is not a valid flow" in reply.json()["detail"]
    assert problems["trigger.rabbitmq.queue"] == 5
    assert 10 in problems.values()


def test_a_definition_is_a_flow_or_a_pipeline(client: TestClient) -> None:
    as_pipeline = client.put(ONE, json={"definition": FLOW, "kind": "pipeline"})
    both = client.put(ONE, content=FLOW + "sink: discard\n", headers=YAML)
    client.put(ONE, content=SPEC.format("orders"), headers=YAML)
    other = client.put(ONE, content=FLOW, headers=YAML)
    named = client.put(ONE.replace("orders", "other"), content=FLOW, headers=YAML)

    assert [each.status_code for each in (as_pipeline, both, other, named)] == [422, 422, 400, 422]
    assert "is a pipeline, and a flow was given" in other.text


def test_the_server_reads_no_file_no_variable_and_no_module_for_a_flow(
    store: ControlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schema.json").write_text('{"type": "canary-of-a-file"}')
    (tmp_path / "canary_module.py").write_text("raise SystemExit('canary-of-a-module')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PENSTOCK_CANARY", "canary-of-a-variable")
    for step in (
        f"validate: {tmp_path}/schema.json",
        "python: canary_module:run",
        "log: $${env:PENSTOCK_CANARY} ${env:PENSTOCK_CANARY}",
        f"log: $${{file:{tmp_path}/schema.json}}",
        "throttle: {rate: '$${env:PENSTOCK_CANARY}'}",
        "throttle: {rate: '${env:PENSTOCK_CANARY}'}",
    ):
        text = f"name: orders\ntrigger: {{kafka: t}}\nsteps:\n  - {step}\n"
        checked = checked_definition(store.secrets, "orders", text)

        assert checked.kind is Kind.FLOW
        assert "canary-of" not in repr(checked)
        if "rate: '$$" not in step:
            assert checked.problems == []


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("connection: {addresses: 'kafka:9092'}\ntrigger: {timer: 5s}", 200),
        ("trigger: {kafka: {topics: t, connection: {addresses: 'kafka:9092'}}}", 200),
        ("trigger: {kafka: {topics: t, connection: {addresses: '${env:ADDRESSES}'}}}", 501),
    ],
)
def test_the_dead_letters_of_a_flow_are_in_the_cluster_that_it_names(
    kafka_api: Api, monkeypatch: pytest.MonkeyPatch, text: str, status: int
) -> None:
    monkeypatch.setenv("ADDRESSES", "kafka:9092")
    clusters: list[str] = []

    def no_records(connection: Connection, _topic: str) -> Any:
        clusters.append(connection.brokers)
        return SimpleNamespace(read=lambda: iter(()))

    monkeypatch.setattr(dead_letter_topic, "TopicRecords", no_records)
    client = kafka_api()
    client.put(ONE, content=f"name: orders\n{text}\n", headers=YAML)

    reply = client.get(f"{ONE}/dead-letters")

    assert reply.status_code == status, reply.text
    assert clusters == (["kafka:9092"] if status == 200 else [])
