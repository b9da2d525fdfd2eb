"""The real servers of the tests, each started once in a run, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.artemis import Artemis
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres


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
