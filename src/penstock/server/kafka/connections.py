"""The clusters that the API works with: connections of penstock.yaml by name, with clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Annotated

from fastapi import Query

from penstock.config import Connection, Settings, find_connection
from penstock.errors import ConfigError, NotFoundError, TransientError
from penstock.formats.registry import Registry
from penstock.formats.registry.registry_options import RegistryOptions
from penstock.kafka import Admin
from penstock.server.kafka.kafka_statuses import with_status

Find = Callable[[str | None], Connection]
"""Returns the connection of a name; None is the default one."""

ConnectionName = Annotated[
    str | None,
    Query(
        alias="connection",
        max_length=200,
        description="A connection of penstock.yaml; default: the default one.",
    ),
]
_MOST = 8
_MOST_WAITING = 4
_IDLE = 2


def find_named(name: str | None) -> Connection:
    """Return a configured connection. An address is refused: callers must not choose where we connect.

    >>> find_named("localhost:9092")
    Traceback (most recent call last):
    penstock.errors.ConfigError: 'localhost:9092' is not the name of a connection; give a name ...
    """
    if name is not None and ":" in name:
        raise ConfigError(
            f"{name!r} is not the name of a connection; give a name of penstock.yaml, or none for "
            "the default one"
        )
    return find_connection(name)


class Connections:
    """Connections by name, with clients that are used again; safe to share between threads.

    `registry` is the schema registry of the service; `timeout` is in seconds, for each request.
    At most eight requests work with one cluster at the same time; some wait, and others are refused.

    Examples
    --------
    ::

        connections = Connections()
        with connections.admin("production") as admin:
            admin.topics()
        connections.close()
    """

    def __init__(
        self,
        find: Find = find_named,
        registry: RegistryOptions | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._find = find
        self._registry = registry
        self._timeout = timeout
        self._pools: dict[str | None, AdminPool] = {}
        self._lock = Lock()
        self._closed = False

    def find(self, name: str | None = None) -> Connection:
        """Return the connection of a name; None is the default one."""
        return self._find(name)

    @staticmethod
    def names() -> list[str]:
        """Return the names of all configured connections."""
        return Settings.read().names()

    @contextmanager
    def admin(self, name: str | None = None) -> Iterator[Admin]:
        """Use a client of a cluster; errors inside of the block have their status of HTTP."""
        pool = self._pool(name)
        with with_status(), pool.use() as admin:
            yield admin

    @contextmanager
    def place(self, name: str | None = None) -> Iterator[Connection]:
        """Use a connection for a client of one's own; it counts as one of the cluster's requests."""
        pool = self._pool(name)
        with with_status(), pool.counted():
            yield pool.connection

    def registry(self) -> Registry | None:
        """Return the client of the schema registry, which remembers schemas; None where there is none."""
        return None if self._registry is None else self._registry.client()

    def fresh_registry(self) -> Registry:
        """Return a client that asks the schema registry for everything again."""
        if self._registry is None:
            raise NotFoundError(
                "this server has no schema registry; start it with one: penstock serve --registry URL, "
                "or `registry` in the section server: of penstock.yaml"
            )
        return self._registry.fresh_client()

    def close(self) -> None:
        """Close all clients. Those in use are closed when their request ends."""
        with self._lock:
            self._closed = True
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, name: str | None) -> AdminPool:
        connection = self._find(name)
        with self._lock:
            if self._closed:
                raise TransientError("the server is shutting down")
            pool = self._pools.get(name)
            if pool is not None and pool.connection == connection:
                return pool
            self._pools[name] = made = AdminPool(connection, self._timeout)
        if pool is not None:
            pool.close()  # the settings have changed
        return made


class Turns:
    """Lets eight requests work at a time, and some wait; a cluster that is away must not stop the API."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._all = BoundedSemaphore(_MOST + _MOST_WAITING)
        self._working = BoundedSemaphore(_MOST)

    @contextmanager
    def taken(self, what: str) -> Iterator[None]:
        """Be one of the requests that work with something; refuse where too many do."""
        refused = TransientError(f"{_MOST} other requests work with {what} now; try again later")
        if not self._all.acquire(blocking=False):
            raise refused
        try:
            if not self._working.acquire(timeout=self._timeout):
                raise refused
            try:
                yield
            finally:
                self._working.release()
        finally:
            self._all.release()


class AdminPool:
    """Admin clients of one connection, each used by one request at a time."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        self.connection = connection
        self._timeout = timeout
        self._idle: list[Admin] = []
        self._lock = Lock()
        self._turns = Turns(timeout)
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[Admin]:
        """Use a client. One that failed because of the cluster is not used again."""
        with self.counted():
            admin = self._take()
            keep = False
            try:
                yield admin
                keep = True
            except ConfigError:
                keep = True
                raise
            finally:
                self._return(admin, keep=keep)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Be one of the requests that work with this cluster; wait where there are too many."""
        with self._turns.taken(self.connection.brokers):
            yield

    def close(self) -> None:
        """Close the clients that are not in use; the others are closed when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for admin in idle:
            admin.close()

    def _take(self) -> Admin:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Admin(self.connection, self._timeout)

    def _return(self, admin: Admin, *, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(admin)
                return
        admin.close()
