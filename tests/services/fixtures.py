"""The real servers of the tests, each started once in a run, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    server = MariaDb()
    try:
        yield server
    finally:
        server.remove()
