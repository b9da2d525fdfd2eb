"""The shared broker as the server sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.server.kafka.connections import Connections


@pytest.fixture(scope="session")
def connections(connection: Connection) -> Iterator[Connections]:
    """The shared broker as the default connection; `away` is a broker that does not answer."""

    def find(name: str | None) -> Connection:
        if name == "away":
            return Connection(brokers="127.0.0.1:9")
        if name is not None:
            raise ConfigError(f"no connection is named {name!r}")
        return connection

    made = Connections(find, timeout=10.0)
    yield made
    made.close()
