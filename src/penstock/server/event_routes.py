"""Events of deployments, as a list or as a stream, and the audit log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import EventRow
from penstock.errors import ConfigError
from penstock.server.app_state import GREATEST, PAGE, Cursor, Feed, Limit, Store, Tail
from penstock.server.caller import Caller, requires
from penstock.server.deployment_access import find_visible, is_name, visible_names
from penstock.server.event_stream import STREAM, Start, number_before, refuse_both, streamed
from penstock.server.paging import after as key_of
from penstock.server.paging import page

router = APIRouter(tags=["events"])
_CHUNK = 1000


@dataclass(frozen=True)
class Selection:
    """The events that a caller wants and may see."""

    store: ControlStore
    access: Access
    deployment: str | None

    def of(self, rows: list[EventRow]) -> list[EventRow]:
        """Return those of these events that belong to the selection."""
        mine = [row for row in rows if self.deployment in (None, row.deployment)]
        if not mine or self.access.allows(Role.VIEWER):
            return mine
        visible = visible_names(self.store, self.access)
        return [row for row in mine if row.deployment in visible]


def _selection(
    store: Store,
    access: Caller,
    deployment: Annotated[str | None, Query(max_length=200)] = None,
) -> Selection:
    if deployment is not None:
        find_visible(store, access, deployment)
    return Selection(store, access, deployment)


@router.get("/events", response_model=None)
def events(
    request: Request,
    feed: Feed,
    selection: Annotated[Selection, Depends(_selection)],
    start: Start,
    *,
    limit: Limit = PAGE,
    tail: Tail = None,
) -> Response | dict[str, Any]:
    """Return events after a number, the oldest first; as a stream with `Accept: text/event-stream`."""
    if STREAM in request.headers.get("accept", ""):
        if tail is not None and start is None:  # who comes back goes on where the stream ended
            start = number_before(_newest(selection, tail))
        return streamed(feed, feed.listen(start, selection.of), shown=asdict)
    if tail is not None:
        refuse_both(start)
        return {"items": [asdict(row) for row in _newest(selection, tail)], "next": None}
    return _listed(selection, start or 0, limit)


def _newest(selection: Selection, most: int) -> list[EventRow]:
    """Return the newest events that the caller may see, the oldest of them first."""
    events, deployment = selection.store.events, selection.deployment
    found: list[EventRow] = []
    before = None
    while rows := events.newest(_CHUNK, deployment=deployment, before=before):
        found = selection.of(rows) + found
        before = rows[0].number
        if len(found) >= most or len(rows) < _CHUNK:
            break
    return found[-most:]


def _listed(selection: Selection, start: int, limit: int) -> dict[str, Any]:
    events, deployment = selection.store.events, selection.deployment
    found: list[EventRow] = []
    while rows := events.after(start, deployment=deployment, most=limit + 1):
        found += selection.of(rows)
        start = rows[-1].number
        if len(found) > limit or len(rows) <= limit:
            break
    return page(found, limit, key=lambda row: row.number, shown=asdict)


@router.get("/audit", dependencies=[Depends(requires(Role.ADMIN))])
def audit(
    store: Store,
    target: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Return the changes, the newest first."""
    number = key_of(cursor)
    if not (number is None or (type(number) is int and 0 <= number <= GREATEST)):
        raise ConfigError("the cursor is not one of the audit log; give none to start over")
    if target is not None and not is_name(target):
        return page([], limit, key=str, shown=str)
    rows = store.audit.before(number, target=target, most=limit + 1)
    return page(rows, limit, key=lambda row: row.number, shown=asdict)
