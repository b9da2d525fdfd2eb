"""The real servers of the tests, each started once in a run, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.mariadb import MariaDb
from tests.services.object_store import S3Server
from tests.services.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server
