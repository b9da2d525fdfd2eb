"""Deployments: list, get, put, patch, delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import PAUSED, PENDING, DeploymentRow, Desired, Kind
from penstock.engine import State
from penstock.errors import ConfigError, nearest
from penstock.server.app_state import PAGE, Body, Cursor, Limit, Settings, Store
from penstock.server.caller import Caller
from penstock.server.conditions import GivenCondition, etag
from penstock.server.deployment_access import find_visible, is_name, require_operator
from penstock.server.deployment_changes import DeploymentChanges
from penstock.server.deployment_views import detail, summaries
from penstock.server.given_definition import GivenDefinition, read_definition, read_desired
from penstock.server.paging import after, page

router = APIRouter(prefix="/deployments", tags=["deployments"])
_CHUNK = 500
STATES = sorted({PENDING, PAUSED, *(each.value for each in State)})
"""The states that a run may be in."""
_TEXT = Query(max_length=200)
_DEFINITION = {
    "application/yaml": {"schema": {"type": "string", "description": "The definition."}},
    "application/json": {
        "schema": {
            "type": "object",
            "description": "A definition; or an object with `definition` (an object, or YAML as a text), "
            "`labels`, `desired` and `kind`.",
        }
    },
}
DEFINITION_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _DEFINITION}}


def given_definition(
    request: Request,
    body: Body,
    access: Caller,
    label: Annotated[list[str] | None, Query(description="key=value; repeatable")] = None,
) -> GivenDefinition:
    """Read the definition of a request; not for those who may not store any."""
    require_operator(access)
    return read_definition(body, request.headers.get("content-type", ""), label or [])


def _changes(store: Store, settings: Settings, access: Caller) -> DeploymentChanges:
    return DeploymentChanges(store, settings, access)


Given = Annotated[GivenDefinition, Depends(given_definition)]
Changes = Annotated[DeploymentChanges, Depends(_changes)]


@dataclass(frozen=True)
class Filters:
    """Which deployments a list has."""

    kind: Annotated[str | None, _TEXT] = None
    desired: Annotated[str | None, _TEXT] = None
    state: Annotated[str | None, _TEXT] = None
    label: Annotated[list[str] | None, Query(description="key=value or key; repeatable")] = None
    text: Annotated[str | None, _TEXT] = None

    def __post_init__(self) -> None:
        _require_one_of("kind", self.kind, [each.value for each in Kind])
        _require_one_of("desired", self.desired, [each.value for each in Desired])
        _require_one_of("state", self.state and self.state.upper(), STATES)

    def accepts(self, shown: dict[str, Any]) -> bool:
        """Return whether a deployment belongs to the list."""
        return (
            self.kind in (None, shown["kind"])
            and self.desired in (None, shown["desired"])
            and (self.state is None or self.state.upper() == shown["run"]["state"])
            and all(_has_label(shown["labels"], each) for each in self.label or ())
            and (self.text is None or self.text.lower() in _searched(shown))
        )


def _require_one_of(name: str, given: str | None, allowed: list[str]) -> None:
    if given is not None and given not in allowed:
        raise ConfigError(f"{name} is {given!r}; {nearest(given, allowed)}")


def _has_label(labels: dict[str, str], wanted: str) -> bool:
    key, equals, value = wanted.partition("=")
    return labels.get(key) == value if equals else key in labels


def _searched(shown: dict[str, Any]) -> str:
    labels = [text for pair in shown["labels"].items() for text in pair]
    return "\n".join([shown["name"], *labels]).lower()


@router.get("")
def list_deployments(
    store: Store,
    access: Caller,
    filters: Annotated[Filters, Depends()],
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Return the deployments that the caller may see, in the order of their names."""
    start = after(cursor)
    if not (start is None or (isinstance(start, str) and is_name(start))):
        raise ConfigError("the cursor is not one of a list of deployments; give none to start over")
    found: list[dict[str, Any]] = []
    for shown in _visible(store, access, start or ""):
        if filters.accepts(shown):
            found.append(shown)
        if len(found) > limit:
            break
    return page(found, limit, key=lambda each: each["name"], shown=lambda each: each)


def _visible(store: ControlStore, access: Access, start: str) -> Iterator[dict[str, Any]]:
    while rows := store.deployments.all(after=start, most=_CHUNK):
        start = rows[-1].name
        yield from summaries(store, [row for row in rows if access.allows(Role.VIEWER, row.labels)])


@router.get("/{name}")
def get_deployment(name: str, store: Store, access: Caller) -> JSONResponse:
    """Return a deployment with its definition; the ETag is for If-Match."""
    return shown(store, find_visible(store, access, name))


@router.put("/{name}", status_code=200, openapi_extra=DEFINITION_BODY)
def put_deployment(
    name: str, given: Given, changes: Changes, condition: GivenCondition
) -> JSONResponse:
    """Store a definition: 201 for a new deployment, 200 for one that exists; it starts by itself."""
    row, is_new = changes.put(name, given, condition)
    return shown(changes.store, row, 201 if is_new else 200)


class Patch(BaseModel):
    """What can be changed without a definition."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    labels: dict[str, str | None] | None = None
    desired: str | None = None


@router.patch("/{name}")
def patch_deployment(
    name: str, given: Patch, changes: Changes, condition: GivenCondition
) -> JSONResponse:
    """Change labels (null removes one) or the desired state: running, paused, stopped."""
    desired = None if given.desired is None else read_desired(given.desired)
    return shown(changes.store, changes.patch(name, given.labels, desired, condition))


@router.delete("/{name}", status_code=202)
def delete_deployment(name: str, changes: Changes, condition: GivenCondition) -> JSONResponse:
    """Stop a deployment and remove it with its state; a worker does that, some time later."""
    row = changes.set_desired(name, Desired.DELETED, condition)
    return shown(changes.store, row, 202)


def shown(store: ControlStore, row: DeploymentRow, status: int = 200) -> JSONResponse:
    """Return the reply with a deployment."""
    return JSONResponse(detail(store, row), status, {"ETag": etag(row)})
