"""One real broker for all tests here; each test has topics and groups of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from penstock.config import Connection
from penstock.kafka import Admin

from .twins import Twins


@pytest.fixture
def admin(connection: Connection) -> Iterator[Admin]:
    with Admin(connection) as admin:
        yield admin


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


@pytest.fixture
def new_topic(admin: Admin) -> Callable[..., str]:
    """Makes a topic with a name that no other test has."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"kafka-{uuid4().hex[:8]}"
        admin.create_topic(name, partitions, config=config)
        return name

    return make


@pytest.fixture(params=["sync", "asyncio"])
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    """The sync clients, then their asyncio twins: what is promised holds for both."""
    made = Twins(request.param)
    yield made
    made.loop.close()
