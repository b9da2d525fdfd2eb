"""Who sent a request, and what they may do: set by the access check, asked for by routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, cast

from fastapi import Depends, Request

from penstock.control.roles import Access, Role
from penstock.server.problems import RefusedRequestError


def caller(request: Request) -> Access:
    """Return the caller of a request; there is none where the access check did not run."""
    access = getattr(request.state, "access", None)
    if access is None:
        raise RefusedRequestError(401, "log in first: this request has neither a user nor a token")
    return cast("Access", access)


Caller = Annotated[Access, Depends(caller)]
"""The type of a route's parameter that is the caller."""


def requires(role: Role) -> Callable[[Access], Access]:
    """Return what a route depends on to be for this role, for the service as a whole."""

    def check(access: Caller) -> Access:
        require(access, role)
        return access

    return check


def require(access: Access, role: Role, labels: Mapping[str, str] | None = None) -> None:
    """Refuse a caller without this role, for a deployment with these labels or for everything."""
    if not access.allows(role, labels):
        where = "" if labels is None else " for this deployment"
        raise RefusedRequestError(
            403,
            f"{access.user!r} is not allowed to do this{where}: it takes the role {role.name.lower()}",
        )
