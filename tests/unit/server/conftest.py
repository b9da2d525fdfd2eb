"""A store in a file, with the server's application over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from penstock.control.passwords import Cost
from penstock.control.store import ControlStore
from penstock.control.store.users import Users
from penstock.server.app import create_app
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers
from penstock.server.settings import ServerSettings

SPEC = "name: {}\nsource: {{kafka: {{topics: t}}}}\nsink: discard\n"
YAML = {"Content-Type": "application/yaml"}
PASSWORD = "correct horse 1"


@pytest.fixture
def store(control_store: ControlStore) -> ControlStore:
    control_store.users = Users(control_store.database, Cost(n=16))
    return control_store


Api = Callable[..., TestClient]


@pytest.fixture
def api(store: ControlStore) -> Api:
    """Makes clients of an application over the store: `api(user)` of one with login."""

    def make(
        user: str | None = None, routers: Sequence[APIRouter] = (), **settings: Any
    ) -> TestClient:
        own = {"login": True, **settings} if user else settings
        app = create_app(store, ServerSettings(**own), routers)
        client = TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50000))
        if user:
            client.auth = (user, PASSWORD)
        return client

    return make


@pytest.fixture
def client(api: Api) -> TestClient:
    """A client of a server without login."""
    return api()


@pytest.fixture
def kafka_api(api: Api, store: ControlStore) -> Iterator[Api]:
    """Makes clients of an application that has the Kafka side, too."""
    connections = Connections()
    yield partial(api, routers=kafka_routers(connections, store))
    connections.close()


@pytest.fixture
def people(store: ControlStore) -> None:
    """An admin, a viewer, and an operator of one team."""
    for name, grants in {
        "ann": ["admin"],
        "vic": ["viewer"],
        "olga": ["viewer", "operator:team=a"],
        "tom": ["operator:team=a"],
    }.items():
        store.users.add(name, PASSWORD, grants)


@pytest.fixture
def put(client: TestClient) -> Callable[..., dict[str, Any]]:
    """Deploys a definition."""

    def deploy(name: str = "orders", **labels: str) -> dict[str, Any]:
        query = {"label": [f"{key}={value}" for key, value in labels.items()]}
        reply = client.put(
            f"/api/v1/deployments/{name}", content=SPEC.format(name), headers=YAML, params=query
        )
        assert reply.status_code in (200, 201), reply.text
        return dict(reply.json())

    return deploy
