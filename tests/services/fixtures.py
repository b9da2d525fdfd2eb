"""The real servers of the tests, each started once in a run, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.artemis import Artemis
from tests.services.mariadb import MariaDb
from tests.services.object_store import S3Server
from tests.services.opensearch import OpenSearch
from tests.services.postgres import Postgres
from tests.services.rabbitmq import RabbitMq


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def artemis() -> Iterator[Artemis]:
    with Artemis() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMq]:
    with RabbitMq() as server:
        yield server


@pytest.fixture(scope="session")
def opensearch() -> Iterator[OpenSearch]:
    # Small limits, so that tests meet them: the largest request, and what is written at one time.
    limits = {"http.max_content_length": "1mb", "indexing_pressure.memory.limit": "1500kb"}
    with OpenSearch(**limits) as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server
