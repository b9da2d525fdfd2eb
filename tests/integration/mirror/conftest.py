"""A second cluster for the tests of mirrors: one for the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Broker, Connection, Pipeline


@pytest.fixture(scope="session")
def east_broker() -> Iterator[Broker]:
    # Records with times long ago stay; and a topic is made by whoever wants it, with its partitions.
    properties = {"log.retention.ms": -1, "auto.create.topics.enable": "false"}
    with Broker(properties=properties) as started:
        yield started


@pytest.fixture
def east(east_broker: Broker) -> Connection:
    return east_broker.connection


@pytest.fixture
def mirror(unique: str, connection: Connection, east: Connection) -> Callable[..., Pipeline]:
    """Makes mirrors from the second cluster into the first."""

    def make(
        into: str = "{topic}",
        source: Connection = east,
        target: Connection = connection,
        **options: Any,
    ) -> Pipeline:
        frequent = {"poll": 0.1, "follow_every": 0.3, "groups_every": 0.2}
        return Pipeline(
            name=unique,
            connection=target,
            source={"mirror": {"cluster": source, **frequent, **options}},
            sink={"kafka": into},
            delivery="exactly-once",
            restart={"wait": "100ms", "longest": "1s", "limit": 2},
        )

    return make
