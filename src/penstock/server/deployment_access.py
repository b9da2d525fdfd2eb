"""Deployments as one caller may see them: those without a grant for their labels do not exist."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import DeploymentRow
from penstock.errors import NotFoundError, nearest
from penstock.server.caller import require


def find_visible(store: ControlStore, access: Access, name: str) -> DeploymentRow:
    """Return a deployment that the caller may see."""
    row = store.deployments.get(name) if is_name(name) else None
    if row is None or not access.allows(Role.VIEWER, row.labels):
        raise not_found(store, access, name)
    return row


def find_for(store: ControlStore, access: Access, name: str, role: Role) -> DeploymentRow:
    """Return a deployment for which the caller has a role."""
    row = find_visible(store, access, name)
    require(access, role, row.labels)
    return row


def require_operator(access: Access) -> None:
    """Refuse a caller who is not an operator of any deployment."""
    labels = [dict([grant.label]) if grant.label else {} for grant in access.grants]
    if not any(access.allows(Role.OPERATOR, each) for each in labels):
        require(access, Role.OPERATOR)


def not_found(store: ControlStore, access: Access, name: str) -> NotFoundError:
    """Return the error for a name, with a hint at a deployment that the caller may see."""
    names = sorted(visible_names(store, access))
    hint = nearest(name, names[:1000]) if names else "there are none"
    return NotFoundError(f"there is no deployment {name[:200]!r}; {hint[:1000]}")


def visible_names(store: ControlStore, access: Access) -> set[str]:
    """Return the names of the deployments that the caller may see."""
    labels: Mapping[str, Mapping[str, str]] = store.deployments.labels()
    return {name for name, own in labels.items() if access.allows(Role.VIEWER, own)}


def is_name(name: str) -> bool:
    """Return whether a database can look this name up.

    >>> is_name("orders"), is_name("a\\x00b")
    (True, False)
    """
    return name.isprintable() and len(name) <= 200
