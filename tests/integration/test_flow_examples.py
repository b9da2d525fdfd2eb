"""The documented cases of flows, as examples/flows has them, against the real systems."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.services.command_line import run_here
from tests.services.json_api import Answer, Seen
from tests.services.orders_api import OrdersApi
from tests.services.rabbitmq import PASSWORD, RabbitMq

from penstock import Connection
from penstock.testing import fill, read_all

FLOWS = Path(__file__).parents[2] / "examples/flows"
Penstock = Callable[..., str]


@pytest.fixture
def penstock(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)

    def run(*arguments: object) -> str:
        done = run_here(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def queues(rabbitmq: RabbitMq, monkeypatch: pytest.MonkeyPatch) -> RabbitMq:
    monkeypatch.setenv("AMQP_URL", rabbitmq.url())
    monkeypatch.setenv("AMQP_PASSWORD", PASSWORD)
    return rabbitmq


def test_kafka_to_rabbitmq(penstock: Penstock, connection: Connection, queues: RabbitMq) -> None:
    queues.declare("large-orders")
    orders = [{"id": n, "total": n} for n in range(90, 190)]
    fill(connection, "flows.orders", [*orders, {"total": 1000}, b"no JSON"], partitions=3)

    penstock("flows", "run", "--once", FLOWS / "kafka-to-rabbitmq.yaml")

    messages = queues.drain("large-orders")
    assert sorted(json.loads(body)["id"] for _, _, body in messages) == [*range(101, 190)]
    ids = {properties.message_id for _, properties, _ in messages}
    assert len(ids) == 89
    assert all(each.startswith("flows.orders-") for each in ids)
    letters = json.loads(
        penstock("deadletters", "list", "--json", FLOWS / "kafka-to-rabbitmq.yaml")
    )
    assert {each["error_type"] for each in letters} == {"CORE:VALIDATION"}
    assert len(letters) == 2


def test_kafka_to_http_with_retries_and_dead_letters(
    penstock: Penstock, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[int] = Counter()
    taken: list[Any] = []

    def respond(seen: Seen) -> Answer:
        invoice = json.loads(seen.body)
        asked[invoice["number"]] += 1
        if invoice["number"] % 10 == 1 and asked[invoice["number"]] < 3:
            return Answer(b"busy", 503)
        if invoice["amount"] < 0:
            return Answer(b"a negative amount", 422)
        taken.append((seen.headers["Idempotency-Key"], invoice["amount"]))
        return Answer(b"ok", 201)

    file = FLOWS / "kafka-to-http.yaml"
    invoices = [{"id": n, "net": 10 if n != 7 else -1} for n in range(20)]
    fill(connection, "flows.invoices", invoices)
    with OrdersApi(respond) as api:
        monkeypatch.setenv("INVOICES_URL", api.url)
        penstock("flows", "run", "--once", file)
        assert sorted(taken) == sorted((f"invoice-{n}", 12) for n in range(20) if n != 7)
        assert [asked[n] for n in (1, 11, 2, 7)] == [3, 3, 1, 1]
        (letter,) = json.loads(penstock("deadletters", "list", "--json", file))
        assert (letter["id"], letter["error_type"]) == ("flows.invoices-0-7", "HTTP:422")
        fixed = penstock("deadletters", "show", "--value", file, letter["id"]).replace(
            "-1.2", "1.2"
        )
        penstock("deadletters", "replay", "--yes", file, letter["id"], "--value", fixed)
        assert taken[-1] == ("invoice-7", 1.2)


def test_order_fulfilment(
    penstock: Penstock,
    connection: Connection,
    queues: RabbitMq,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reserved: list[tuple[str, int]] = []

    def respond(seen: Seen) -> Answer:
        sku = seen.path.rsplit("/", 1)[-1]
        if sku == "none":
            return Answer(b"", 404)
        reserved.append((sku, json.loads(seen.body)["order"]))
        return Answer(b"{}", 200)

    queues.declare("shipping")
    orders = [
        {
            "id": n,
            "lines": [
                {"sku": f"sku-{n}", "quantity": 2, "price": 5},
                {"sku": "none" if n % 5 == 0 else "b", "quantity": 1, "price": 7},
            ],
        }
        for n in range(20)
    ]
    fill(connection, "flows.fulfilment", [*orders, {"id": 99, "lines": []}])
    with OrdersApi(respond) as api:
        monkeypatch.setenv("WAREHOUSE_URL", api.url.removesuffix("/orders"))
        penstock("flows", "run", "--once", FLOWS / "order-fulfilment.yaml")

    complete = {n for n in range(20) if n % 5}
    shipped = [json.loads(body) for _, _, body in queues.drain("shipping")]
    assert {order["id"] for order in shipped} == complete
    assert {order["total"] for order in shipped} == {17}
    confirmed = read_all(connection, "flows.confirmed")
    assert sorted(int(record.key) for record in confirmed) == sorted(complete)
    waiting = [json.loads(record.value) for record in read_all(connection, "flows.waiting")]
    assert {order["id"]: order["total"] for order in waiting} == {0: 10, 5: 10, 10: 10, 15: 10}
    assert len(reserved) == 20 + len(complete)
