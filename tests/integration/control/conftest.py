"""One database for all tests, emptied before each: a database is thousands of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from tests.services.control import recorded_statements
from tests.services.postgres import PASSWORD, Postgres

from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import ControlStore, Database
from penstock.control.store.tables import METADATA, SEQUENCE


def create(postgres: Postgres, name: str) -> str:
    """Create a database, and return its address with the password."""
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as session:
        session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    password = quote(PASSWORD, safe="")
    return f"postgresql://penstock:{password}@{postgres.host}:{postgres.port}/{name}"


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFile:
    return KeyFile(tmp_path_factory.mktemp("keys") / "keys")


@pytest.fixture(scope="session")
def migrated_url(postgres: Postgres, keys: KeyFile) -> str:
    url = create(postgres, "control")
    ControlStore.open(Database(url), keys).close()
    return url


@pytest.fixture(scope="session")
def plain_url(postgres: Postgres) -> str:
    return create(postgres, "plain")


@pytest.fixture
def empty_url(plain_url: str) -> str:
    """The address of a database without any table."""
    database = Database(plain_url)
    with database.write() as session:
        session.execute(sa.text("DROP SCHEMA public CASCADE"))
        session.execute(sa.text("CREATE SCHEMA public"))
    database.close()
    return plain_url


@pytest.fixture
def url(migrated_url: str) -> str:
    """The address of an empty store."""
    database = Database(migrated_url)
    names = ", ".join(table.name for table in METADATA.sorted_tables if table is not SEQUENCE)
    with database.write() as session:
        session.execute(sa.text(f"TRUNCATE {names}"))
        session.execute(SEQUENCE.update().values(value=0))
    database.close()
    return migrated_url


@pytest.fixture
def store(url: str, keys: KeyFile) -> Iterator[ControlStore]:
    opened = ControlStore.open(Database(url), keys)
    yield opened
    opened.close()


@pytest.fixture
def statements(store: ControlStore) -> Iterator[Callable[[], list[str]]]:
    with recorded_statements(store.database) as taken:
        yield taken
