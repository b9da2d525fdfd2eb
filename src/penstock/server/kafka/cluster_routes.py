"""The cluster: its id, brokers and ACLs, and the connections that the server has."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from penstock.control.roles import Role
from penstock.errors import ConfigError, TerminalError
from penstock.kafka import AclFilter
from penstock.kafka.error_table import group
from penstock.kafka.kafka_errors import code_of
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import ConnectionName, Connections
from penstock.server.kafka.kafka_names import DEFAULT_LIMIT, Cursor, Limit
from penstock.server.paging import after, page
from penstock.server.problems import RefusedRequestError

Word = Annotated[str | None, Query(max_length=300)]


def cluster_router(connections: Connections) -> APIRouter:
    """Return the routes of the cluster."""
    viewer = [Depends(requires(Role.VIEWER))]
    router = APIRouter(tags=["cluster"], route_class=CheckedRoute, dependencies=viewer)

    @router.get("/connections")
    def list_connections() -> dict[str, Any]:
        """Return the names of the connections of penstock.yaml."""
        return {"items": [{"name": name} for name in connections.names()], "next": None}

    @router.get("/cluster")
    def describe_cluster(connection: ConnectionName = None) -> dict[str, Any]:
        """Return the cluster's id, its controller and its brokers."""
        with connections.admin(connection) as admin:
            return asdict(admin.cluster())

    @router.get("/acls")
    def list_acls(
        *,
        connection: ConnectionName = None,
        principal: Word = None,
        operation: Word = None,
        resource: Word = None,
        name: Word = None,
        permission: Word = None,
        pattern: Word = None,
        host: Word = None,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return the ACLs that agree with every word that is given."""
        wanted = AclFilter(principal, operation, resource, name, permission, pattern, host)
        first = _first(cursor)
        with connections.admin(connection) as admin:
            try:
                rules = sorted((list(asdict(rule).values()), rule) for rule in admin.acls(wanted))
            except TerminalError as error:
                if code_of(error) in group("forbidden").codes:
                    raise
                raise RefusedRequestError(501, str(error)) from error
        later = [each for each in rules if each[0] > first]
        return page(later[: limit + 1], limit, lambda each: each[0], lambda each: asdict(each[1]))

    return router


def _first(cursor: str | None) -> list[str]:
    """Return the rule after which a page begins; empty for the first one."""
    key = after(cursor)
    if key is None:
        return []
    if isinstance(key, list) and all(isinstance(each, str) for each in key):
        return key
    raise ConfigError(
        f"{str(cursor)[:40]!r} is not a cursor of ACLs; give the 'next' of the page before"
    )
