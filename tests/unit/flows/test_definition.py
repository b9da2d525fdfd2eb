"""Definitions: what is wrong is reported with its line; YAML and Python give the same model."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.errors import ConfigError, DefinitionError
from penstock.flows import CompiledFlow, Flow, Message, parse_flow, read_flow
from penstock.flows.definition.cron import Cron
from penstock.flows.definition.kafka_options import (
    ConsumerAdvanced,
    KafkaConnection,
    ProducerAdvanced,
    check_consumers,
)
from penstock.flows.testing import canned_systems

WRONG = yaml.safe_load((Path(__file__).parent / "wrong_flows.yaml").read_text())


def test_there_are_many_wrong_flows() -> None:
    assert len(WRONG) >= 100


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_flow_is_refused_with_line_given_and_allowed(name: str) -> None:
    with pytest.raises(DefinitionError) as error:
        parse_flow(WRONG[name]["flow"], "flow.yaml")

    found = "".join(f"{problem}\n" for problem in error.value.problems)
    assert found.replace(str(Path.cwd()), "FOLDER") == WRONG[name]["problems"]
    assert str(error.value).startswith("flow.yaml is not a valid flow:\n  line ")


def test_yaml_and_python_give_the_same_flow() -> None:
    text = """
name: large-orders
trigger: {kafka: {topics: [orders, "^orders-.*"], group: g}}
steps:
  - filter: payload.total > 100
  - try:
      steps:
        - id: price
          http: {url: "https://a.example/${payload.id}", into: variable.price}
          retry: {attempts: 5, wait: 500ms}
      catch: [{log: "no price: ${error.Code}"}]
  - publish: {kafka: {topic: large}}
    on_error: {handler: [{log: lost}], then: dead-letter}
"""
    price = {"url": "https://a.example/${payload.id}", "into": "variable.price"}
    built = (
        Flow(
            name="large-orders",
            trigger={"kafka": {"topics": ["orders", "^orders-.*"], "group": "g"}},
        )
        .then(filter="payload.total > 100")
        .then(
            try_={
                "steps": [{"id": "price", "http": price, "retry": {"attempts": 5, "wait": 0.5}}],
                "catch": [{"log": "no price: ${error.Code}"}],
            }
        )
        .then(
            publish={"kafka": {"topic": "large"}},
            on_error={"handler": [{"log": "lost"}], "then": "dead-letter"},
        )
    )

    assert parse_flow(text) == built
    assert Flow(**built.model_dump()) == built


def test_a_python_function_is_a_step_without_a_name() -> None:
    flow = Flow(name="t", trigger={"kafka": "a"}).then(python=lambda message: message.document * 2)

    assert CompiledFlow(flow).run([Message(4)], canned_systems()).results[0].payload == 8


def test_secrets_are_never_shown() -> None:
    flow = parse_flow(
        "name: t\ntrigger: {kafka: {topics: a, connection: {addresses: k, sasl: scram, username: u, "
        "password: hunter2-long}}}\nsteps:\n  - http: {url: 'https://a.example/', "
        "auth: {bearer: token-value-1}}\n"
    )

    shown = f"{flow!r} {flow.model_dump()} {flow}"

    assert "hunter2" not in shown
    assert "token-value" not in shown


def test_references_are_filled_in_and_expressions_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOW_HOST", "api.example.com")
    flow = parse_flow(
        "name: t\ntrigger: {kafka: a}\nsteps:\n  - http: https://${env:FLOW_HOST}/${payload.id}\n"
    )

    assert flow.steps[0].kind.url.given == "https://api.example.com/${payload.id}"  # type: ignore[attr-defined]
    with pytest.raises(DefinitionError, match="FLOW_NONE is not set"):
        parse_flow("name: t\ntrigger: {kafka: '${env:FLOW_NONE}'}")


def nested(depth: int) -> Any:
    step: Any = {"filter": "true"}
    for _ in range(depth):
        step = {"try": {"steps": [step]}}
    return step


def test_steps_nest_to_a_limit() -> None:
    assert Flow(name="t", trigger={"kafka": "a"}, steps=[nested(15)])
    with pytest.raises(DefinitionError, match="nested deeper than 16 levels"):
        Flow(name="t", trigger={"kafka": "a"}, steps=[nested(16)])
    text = "name: t\ntrigger: {kafka: a}\nsteps: " + "[" * 5000 + "]" * 5000
    with pytest.raises(DefinitionError, match="line 3: is nested deeper than 150 levels"):
        parse_flow(text)


def test_a_thousand_steps_and_no_more() -> None:
    began = time.perf_counter()
    flow = Flow(name="t", trigger={"kafka": "a"}, steps=[{"map": "payload + 1"}] * 1000)

    assert CompiledFlow(flow).run([Message(0)], canned_systems()).results[0].payload == 1000
    with pytest.raises(DefinitionError, match="at most 1000 steps"):
        Flow(name="t", trigger={"kafka": "a"}, steps=[{"map": "payload + 1"}] * 1001)
    assert time.perf_counter() - began < 20


def test_a_pattern_of_topics_cannot_hold_up_the_check() -> None:
    # Python's own regular expressions would need 2**60 steps.
    trigger = {"kafka": "^(a+)+$"}

    assert Flow(name="a" * 60, trigger=trigger).notes() == []
    with pytest.raises(DefinitionError, match="the trigger reads 'aaa', to which dead letters go"):
        Flow(name="b", trigger=trigger, dead_letters="aaa")


@pytest.mark.parametrize(
    ("flow", "trigger", "publish"),
    [
        ("shop", {}, {"connection": "shop"}),
        ("shop", {"connection": "shop"}, {}),
        ("shop", {}, {}),
        (None, {"connection": "shop"}, {"connection": "shop"}),
    ],
)
def test_a_flow_that_reads_its_own_output_is_refused_wherever_the_cluster_is_named(
    flow: str | None, trigger: dict[str, str], publish: dict[str, str]
) -> None:
    given = {
        "name": "t",
        "connection": flow,
        "trigger": {"kafka": {"topics": "orders", **trigger}},
        "steps": [{"publish": {"kafka": {"topic": "orders", **publish}}}],
    }

    with pytest.raises(DefinitionError, match="given 'orders', which the trigger reads"):
        Flow(**given)
    given["steps"] = [{"publish": {"kafka": {"topic": "orders", "connection": "elsewhere"}}}]
    assert Flow(**given)


def test_aliases_cannot_stand_for_gigabytes() -> None:
    levels = "".join(f"a{n + 1}: &a{n + 1} [*a{n},*a{n},*a{n}]\n" for n in range(40))

    with pytest.raises(DefinitionError, match="line 2: an alias"):
        parse_flow(f"a0: &a0 [x]\n{levels}")


def test_all_options_of_the_consumer_have_their_defaults() -> None:
    assert ConsumerAdvanced().model_dump() == {
        "confirm": "after-success",
        "isolation": "read-uncommitted",
        "retry_backoff_ms": 2000,
        "request_timeout_ms": 30_000,
        "session_timeout_ms": 10_000,
        "heartbeat_ms": 3000,
        "rebalance_check_ms": 60_000,
        "rebalance_strategy": "range",
        "rebalance_retries": 4,
        "rebalance_backoff_ms": 2000,
        "fetch_min_bytes": 1,
        "fetch_default_bytes": 1_048_576,
        "fetch_max_mb": 0,
        "fetch_wait_ms": 250,
        "commit_interval_ms": 1000,
        "initial_offset": "newest",
        "offset_retention_s": 0,
    }
    assert ConsumerAdvanced(fetch_max_mb=2, isolation="read-committed").settings() == {
        "isolation.level": "read_committed",
        "retry.backoff.ms": 2000,
        "retry.backoff.max.ms": 2000,
        "request.timeout.ms": 30_000,
        "fetch.min.bytes": 1,
        "fetch.max.bytes": 2 * 2**20,
    }
    assert ConsumerAdvanced().settings() == {
        "isolation.level": "read_uncommitted",
        "retry.backoff.ms": 2000,
        "retry.backoff.max.ms": 2000,
        "request.timeout.ms": 30_000,
        "fetch.min.bytes": 1,
    }
    own = ConsumerAdvanced(fetch_default_bytes=1_048_576, fetch_wait_ms=250, fetch_max_mb=0)
    assert own.given() == {"max.partition.fetch.bytes": 1_048_576, "fetch.max.wait.ms": 250}


def test_all_options_of_the_producer_have_their_defaults() -> None:
    assert ProducerAdvanced().model_dump() == {
        "max_message_bytes": 1_000_000,
        "acks": "leader",
        "request_timeout_ms": 10_000,
        "idempotent": False,
        "flush_bytes": 0,
        "flush_messages": 0,
        "flush_interval_ms": 0,
        "flush_max_messages": 0,
    }
    assert ProducerAdvanced(idempotent=True, flush_interval_ms=5).settings() == {
        "message.max.bytes": 1_000_000,
        "acks": "all",
        "request.timeout.ms": 10_000,
        "enable.idempotence": True,
        "linger.ms": 5,
    }


def test_a_connection_becomes_the_one_of_the_client(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    connection = KafkaConnection(
        addresses="a:9093,b:9093",
        sasl="scram",
        username="app",
        password="hunter2",
        scram="SHA-512",
        tls=True,
        server_certificate=str(authority),
    )

    assert connection.connection().librdkafka() == {
        "bootstrap.servers": "a:9093,b:9093",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "app",
        "sasl.password": "hunter2",
        "ssl.ca.location": str(authority),
    }


def test_options_without_an_effect_are_named() -> None:
    flow = parse_flow(
        "name: t\ntrigger: {kafka: {topics: a, advanced: {heartbeat_ms: 2000, fetch_min_bytes: 9}}}\n"
        "steps:\n  - publish: {kafka: {topic: b, producer: {flush_messages: 7},\n"
        "      connection: {addresses: k, version: 2.8}}}\n"
    )

    notes = [note.partition(":")[0] for note in flow.notes()]

    assert notes == [
        "trigger.kafka.advanced.heartbeat_ms",
        "steps[0].publish.kafka.producer.flush_messages",
        "steps[0].publish.kafka.connection.version",
    ]


@pytest.mark.parametrize(
    ("trigger", "step", "note"),
    [
        ("{http: {path: /a, timeout: 5s}}", "log: a", "trigger.http.timeout"),
        ("{timer: {interval: 5s, zone: Europe/Berlin}}", "log: a", "trigger.timer.zone"),
        ("{kafka: a}", "{try: {steps: [{log: a}]}, retry: 3}", "steps[0].retry"),
        ("{kafka: a}", "{try: {steps: [{log: a}]}, on_error: stop}", "steps[0].on_error"),
        ("{kafka: a}", "join: {count: 3, at: $.t}", "steps[0].join.at"),
        ("{kafka: a}", "lookup: {table: a.csv, key: $.a, cache: 5}", "steps[0].lookup.cache"),
        ("{kafka: a}", "sql: {query: SELECT 1, password: abc}", "steps[0].sql.password"),
        (
            "{kafka: a}",
            "publish: {rabbitmq: {url: 'amqp://mq', routing_key: a, confirms: false}}",
            "steps[0].publish.rabbitmq.confirms",
        ),
    ],
)
def test_an_option_without_an_effect_next_to_the_others_is_named(
    trigger: str, step: str, note: str
) -> None:
    flow = parse_flow(f"name: t\ntrigger: {trigger}\nsteps:\n  - {step}\n")

    assert [each.partition(":")[0] for each in flow.notes()] == [note]


def test_a_wait_of_nothing_is_not_the_wait_of_the_client() -> None:
    assert ConsumerAdvanced(retry_backoff_ms=0).given() == {
        "retry.backoff.ms": 1,
        "retry.backoff.max.ms": 1000,
    }


def test_consumers_are_fewer_than_partitions() -> None:
    check_consumers(1, {"a": 1})
    check_consumers(3, {"a": 2, "b": 2})
    with pytest.raises(
        ConfigError, match=r"consumers is 4, .* are 4 \(a: 2, b: 2\); give at most 3"
    ):
        check_consumers(4, {"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("cron", "after"),
    [
        ("* * * * *", datetime(2024, 2, 28, 23, 59)),
        ("0 0 29 2 *", datetime(2024, 2, 29)),
        ("*/20 9-17 * * 1-5", datetime(2024, 2, 29, 9)),
        ("30 6 * jan sun", datetime(2025, 1, 5, 6, 30)),
        ("0 12 1 * 7", datetime(2024, 3, 1, 12)),
        ("5,35 0/6 * * *", datetime(2024, 2, 29, 0, 5)),
    ],
)
def test_a_cron_fires_next(cron: str, after: datetime) -> None:
    assert Cron.read(cron).after(datetime(2024, 2, 28, 23, 58)) == after


def test_files_are_found_next_to_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.json").write_text('{"type": "object", "required": ["sku"]}')
    (tmp_path / "products.csv").write_text("sku,price\na,10\n")
    (tmp_path / "flow.yaml").write_text(
        "name: t\ntrigger: {kafka: a}\nsteps:\n  - validate: order.json\n"
        "  - lookup: {table: products.csv, key: payload.sku}\n"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    flow = pickle.loads(pickle.dumps(read_flow(Path("../flow.yaml"))))
    monkeypatch.chdir("/")
    result = CompiledFlow(flow).run([Message({"sku": "a"}), Message({})], canned_systems())

    assert [m.variable for m in result.results] == [{"found": {"sku": "a", "price": "10"}}]
    assert [letter.error["Code"] for letter in result.dead_letters] == ["CORE:VALIDATION"]
    assert flow.steps[1].kind.table == "products.csv"  # type: ignore[attr-defined]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"name: \xff")

    with pytest.raises(ConfigError, match=r"a.yaml: it is not UTF-8"):
        read_flow(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match=r"b.yaml: No such file"):
        read_flow(tmp_path / "b.yaml")


def test_the_core_of_flows_loads_no_spark_and_no_broker() -> None:
    code = (
        "import sys, penstock.flows, penstock.flows.testing\n"
        "print([m for m in ('pyspark', 'pika', 'proton', 'pyarrow') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
