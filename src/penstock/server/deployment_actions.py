"""Deployments: validate, diff, history, rollback, and actions on runs; counters and samples."""

from __future__ import annotations

import difflib
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from penstock.control.roles import Role
from penstock.control.store.deployments import refuse_deleted
from penstock.control.store.rows import DeploymentRow, Desired
from penstock.control.store.samples import SERIES
from penstock.errors import ConfigError, DefinitionError, NotFoundError, Problem
from penstock.server.app_state import GREATEST, PAGE, Cursor, Limit, Store
from penstock.server.caller import Caller, require
from penstock.server.conditions import GivenCondition
from penstock.server.deployment_access import find_visible, is_name
from penstock.server.deployment_changes import DeploymentChanges
from penstock.server.deployment_routes import DEFINITION_BODY, Changes, Given, shown
from penstock.server.deployment_views import shown_counters, shown_generation
from penstock.server.given_definition import GivenDefinition
from penstock.server.paging import after, page
from penstock.server.problems import shown_problems

router = APIRouter(prefix="/deployments/{name}", tags=["deployments"])
_MOST_COMPARED = 1500
"""Lines up to which a difference shows what is the same."""


@router.post("/validate", openapi_extra=DEFINITION_BODY)
def validate(name: str, given: Given, changes: Changes) -> dict[str, Any]:
    """Check a definition without storing it; the reply has all problems, with their lines."""
    before = _allowed_before(changes, name, given)
    try:
        problems = changes.check(name, given, before).problems
    except DefinitionError as error:
        problems = error.problems
    except ConfigError as error:
        problems = [Problem((), str(error))]
    return {"valid": not problems, "problems": shown_problems(problems)}


@router.post("/diff", openapi_extra=DEFINITION_BODY)
def diff(name: str, given: Given, changes: Changes) -> dict[str, Any]:
    """Return the difference between the stored definition and a given one; secrets are masked."""
    before = _allowed_before(changes, name, given)
    if before is not None:
        refuse_deleted(before)
    checked = changes.check(name, given, before)
    checked.require_valid(name)
    old = changes.store.secrets.shown(name, before.spec) if before else ""
    old_labels = before.labels if before else {}
    labels = old_labels if given.labels is None else given.labels
    return {
        "exists": before is not None,
        # A secret that was replaced by another one looks the same.
        "changed": before is None or checked.sealed != before.spec or labels != old_labels,
        "diff": _unified(name, old, changes.store.secrets.shown(name, checked.sealed)),
        "labels": {"before": old_labels, "after": labels},
        "revision": before.revision if before else 0,
    }


def _allowed_before(
    changes: DeploymentChanges, name: str, given: GivenDefinition
) -> DeploymentRow | None:
    """Return the stored deployment; the caller must be allowed to put the given one."""
    store, access = changes.store, changes.access
    before = store.deployments.get(name) if is_name(name) else None
    if before is not None:
        before = find_visible(store, access, name)
        require(access, Role.OPERATOR, before.labels)
    old = before.labels if before else {}
    require(access, Role.OPERATOR, old if given.labels is None else given.labels)
    return before


def _unified(name: str, old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    if before == after:
        return ""
    if min(len(before), len(after)) > _MOST_COMPARED:
        # To compare lines that are all alike would take as long as the cube of their number.
        lines = [f"--- {name} (stored)", f"+++ {name} (given)"]
        lines += [f"@@ -1,{len(before)} +1,{len(after)} @@"]
        lines += [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
        return "\n".join(lines)
    found = difflib.unified_diff(before, after, f"{name} (stored)", f"{name} (given)", lineterm="")
    return "\n".join(found)


@router.get("/history")
def history(
    name: str, store: Store, access: Caller, limit: Limit = PAGE, cursor: Cursor = None
) -> dict[str, Any]:
    """Return the generations of a deployment, the newest first."""
    find_visible(store, access, name)
    last = after(cursor)
    if not isinstance(last, int | None):
        raise ConfigError("the cursor is not one of a history; give none to start over")
    rows = [
        row
        for row in reversed(store.deployments.generations(name))
        if (last is None or row.generation < last) and access.allows(Role.VIEWER, row.labels)
    ]
    return page(rows, limit, key=lambda row: row.generation, shown=shown_generation)


@router.get("/history/{generation}")
def get_generation(name: str, generation: int, store: Store, access: Caller) -> dict[str, Any]:
    """Return one generation with its definition, in which secrets are masked."""
    find_visible(store, access, name)
    found = store.deployments.generation(name, generation) if 0 < generation <= GREATEST else None
    if found is not None and access.allows(Role.VIEWER, found.labels):
        return shown_generation(found) | {"definition": store.secrets.shown(name, found.spec)}
    rows = [
        row for row in store.deployments.generations(name) if access.allows(Role.VIEWER, row.labels)
    ]
    known = ", ".join(str(row.generation) for row in rows[-20:])
    raise NotFoundError(f"{name!r} has no generation {generation}; it has {known}")


class Rollback(BaseModel):
    """The generation that is stored once more."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    generation: int = Field(ge=1, le=GREATEST)


@router.post("/rollback")
def rollback(
    name: str, given: Rollback, changes: Changes, condition: GivenCondition
) -> JSONResponse:
    """Store an earlier generation as a new one, with its labels."""
    return shown(changes.store, changes.rollback(name, given.generation, condition))


@router.post("/pause")
def pause(name: str, changes: Changes, condition: GivenCondition) -> JSONResponse:
    """Stop after the running batch, and remember that it is to go on."""
    return shown(changes.store, changes.set_desired(name, Desired.PAUSED, condition))


@router.post("/resume")
def resume(name: str, changes: Changes, condition: GivenCondition) -> JSONResponse:
    """Run a deployment that is paused or stopped."""
    return shown(changes.store, changes.set_desired(name, Desired.RUNNING, condition))


@router.post("/stop")
def stop(name: str, changes: Changes, condition: GivenCondition) -> JSONResponse:
    """Stop a deployment after the running batch."""
    return shown(changes.store, changes.set_desired(name, Desired.STOPPED, condition))


@router.post("/restart")
def restart(name: str, changes: Changes, condition: GivenCondition) -> JSONResponse:
    """Start a deployment again, also one that has failed."""
    return shown(changes.store, changes.restart(name, condition))


@router.get("/counters")
def counters(name: str, store: Store, access: Caller) -> dict[str, Any]:
    """Return the counters of a deployment: exact, each batch is in them once."""
    find_visible(store, access, name)
    return shown_counters(store.counters.get(name))


@router.get("/samples")
def samples(
    name: str,
    store: Store,
    access: Caller,
    resolution: int = min(SERIES),
    since: Annotated[float, Query(ge=0, le=GREATEST, allow_inf_nan=False)] = 0.0,
) -> dict[str, Any]:
    """Return progress over time: totals at the end of each span of `resolution` seconds."""
    find_visible(store, access, name)
    if resolution not in SERIES:
        allowed = ", ".join(str(each) for each in SERIES)
        raise ConfigError(f"resolution is {resolution}; allowed: {allowed} (seconds)")
    points = [
        {"at": point.at, **asdict(point.sample), "most_lag": point.most_lag}
        for point in store.samples.of(name, resolution, since)
    ]
    return {"resolution": resolution, "points": points}
