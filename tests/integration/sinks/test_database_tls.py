"""TLS to databases: the certificate and the host are verified, and no option is ignored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql.types import StructType
from tests.services.mariadb import PASSWORD, MariaDb
from tests.services.postgres import Postgres

from penstock.config import Connection
from penstock.embedded.certificates import Authority
from penstock.errors import ConfigError
from penstock.pipeline import Opening
from penstock.sinks.database.database_sink import DatabaseSink

SCHEMA = StructType().add("id", "long")
# Another way to write 127.0.0.1, which no certificate names; PostgreSQL has an option for it.
OTHER_NAME = "127.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return Path(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder / "right")


@pytest.fixture(scope="module")
def stranger(folder: Path) -> Path:
    return Authority(folder / "stranger").ca


def _served(authority: Authority, user: str) -> tuple[str, str]:
    """Return certificate and key where the server's user, and no other one, can read them."""
    made = authority.server(user)
    place = Path("/tmp") / f"penstock-tls-{user}-{os.getpid()}"
    place.mkdir(mode=0o700)
    for file in (made.certificate, made.key):
        shutil.copy(file, place)
    if os.geteuid() == 0:
        for path in (place, *place.iterdir()):
            shutil.chown(path, user)
    return str(place / made.certificate.name), str(place / made.key.name)


@pytest.fixture(scope="module")
def postgres(authority: Authority) -> Iterator[Postgres]:
    certificate, key = _served(authority, "postgres")
    with Postgres(ssl="on", ssl_cert_file=certificate, ssl_key_file=key) as server:
        yield server
    shutil.rmtree(Path(key).parent)


@pytest.fixture(scope="module")
def mariadb(authority: Authority) -> Iterator[MariaDb]:
    certificate, key = _served(authority, "mysql")
    with MariaDb(ssl_cert=certificate, ssl_key=key) as server:
        yield server
    shutil.rmtree(Path(key).parent)


def prepare(server: Any, options: str, name: str = "", password: str = PASSWORD) -> DatabaseSink:
    url = server.url
    if name and isinstance(server, Postgres):
        url, options = (
            url.replace(server.host, "other.example"),
            f"{options}&hostaddr={server.host}",
        )
    elif name:
        url = url.replace(server.host, name)
    sink = DatabaseSink(url=f"{url}?{options}", password=password, table="t")
    sink.open(Opening(None, "p", Connection(brokers="b:1"))).prepare(SCHEMA)  # type: ignore[arg-type]
    return sink


def cipher(server: Any, sink: DatabaseSink) -> Any:
    """Return what the session of the sink is encrypted with, as the server says."""
    with sink.database().session() as session:
        connection: Any = session._connection  # type: ignore[attr-defined]
        cursor = connection.cursor()
        if isinstance(server, MariaDb):
            cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            return cursor.fetchone()[1]
        cursor.execute("SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return cursor.fetchone()[0]


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: Any) -> Any:
    return request.getfixturevalue(request.param)


def ca_option(server: Any) -> str:
    return "sslrootcert" if isinstance(server, Postgres) else "ssl_ca"


@pytest.mark.by_turns
def test_the_right_authority_and_host_are_accepted(server: Any, authority: Authority) -> None:
    sink = prepare(server, f"{ca_option(server)}={authority.ca}")
    assert cipher(server, sink)


def test_another_authority_is_refused(server: Any, stranger: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?i)certificate verify failed|signature failure"):
        prepare(server, f"{ca_option(server)}={stranger}")


def test_another_host_is_refused(server: Any, authority: Authority) -> None:
    with pytest.raises(ConfigError, match=r"(?i)host ?name"):
        prepare(server, f"{ca_option(server)}={authority.ca}", OTHER_NAME)


def test_a_missing_file_is_named(server: Any) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        prepare(server, f"{ca_option(server)}=nowhere.pem")


def test_what_is_verified_can_be_chosen(
    postgres: Postgres, mariadb: MariaDb, authority: Authority, stranger: Path
) -> None:
    for server, options, name in [
        (postgres, f"sslrootcert={authority.ca}&sslmode=verify-ca", OTHER_NAME),
        (mariadb, f"ssl_ca={authority.ca}&ssl_verify_identity=false", OTHER_NAME),
        (mariadb, f"ssl_ca={stranger}&ssl_verify_cert=false", ""),
        (mariadb, f"ssl_ca={authority.ca}&ssl_disabled=false", ""),
    ]:
        assert cipher(server, prepare(server, options, name))
    assert not cipher(mariadb, prepare(mariadb, "ssl_disabled=true"))


def test_a_server_without_tls_is_refused_where_tls_is_asked_for(authority: Authority) -> None:
    with Postgres() as plain, pytest.raises(ConfigError, match="does not support SSL"):
        prepare(plain, f"sslrootcert={authority.ca}")
    with (
        MariaDb(skip_ssl="1") as bare,
        pytest.raises(ConfigError, match="cannot be reached by TLS"),
    ):
        prepare(bare, f"ssl_ca={authority.ca}")


@pytest.mark.parametrize("given", ["ssl_cax=ca.pem", "tls=1", "sslmode=verify-full", "ssl_ca="])
def test_an_option_that_would_be_ignored_is_refused(given: str) -> None:
    name = given.partition("=")[0]
    with pytest.raises(ValidationError, match=rf"'url' has the option '{name}'"):
        DatabaseSink(url=f"mariadb://app@db/shop?{given}", table="t")


def test_an_option_that_postgresql_does_not_know_is_refused(postgres: Postgres) -> None:
    for options in ("sslrootcertx=ca.pem", "sslmode=verify"):
        with pytest.raises(ConfigError, match="invalid"):
            prepare(postgres, options)


def test_a_mode_that_is_neither_true_nor_false_is_refused(mariadb: MariaDb) -> None:
    with pytest.raises(ConfigError, match="'ssl_verify_cert' is 'maybe'; allowed: true, false"):
        prepare(mariadb, "ssl_verify_cert=maybe")
    with pytest.raises(ConfigError, match="'ssl_disabled' turns TLS off, and 'ssl_ca' asks for it"):
        prepare(mariadb, "ssl_disabled=true&ssl_ca=ca.pem")
