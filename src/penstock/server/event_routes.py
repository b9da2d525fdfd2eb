"""Events of deployments, as a list or as a stream, and the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import EventRow
from penstock.errors import ConfigError
from penstock.server.app_state import GREATEST, PAGE, Cursor, Feed, Limit, Number, Store
from penstock.server.caller import Caller, requires
from penstock.server.deployment_access import find_visible, is_name, visible_names
from penstock.server.paging import after as key_of
from penstock.server.paging import page

router = APIRouter(tags=["events"])
STREAM = "text/event-stream"


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


def _start(
    after: Number | None = None,
    cursor: Cursor = None,
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> int | None:
    """Return the number to start after: what a reader has seen last counts most."""
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdigit()):
            raise ConfigError(f"Last-Event-ID is {last_event_id!r}; it is the number of an event")
        return min(int(last_event_id), GREATEST)
    number = key_of(cursor)
    if number is None:
        return after
    if not isinstance(number, int) or not 0 <= number <= GREATEST:
        raise ConfigError("the cursor is not one of a list of events; give none to start over")
    return number


@router.get("/events", response_model=None)
def events(
    request: Request,
    feed: Feed,
    selection: Annotated[Selection, Depends(_selection)],
    start: Annotated[int | None, Depends(_start)],
    limit: Limit = PAGE,
) -> Response | dict[str, Any]:
    """Return events after a number, the oldest first; as a stream with `Accept: text/event-stream`."""
    if STREAM in request.headers.get("accept", ""):
        feed.require_room()
        return StreamingResponse(_sent(feed.listen(start, selection.of)), media_type=STREAM)
    return _listed(selection, start or 0, limit)


def _listed(selection: Selection, start: int, limit: int) -> dict[str, Any]:
    events, deployment = selection.store.events, selection.deployment
    found: list[EventRow] = []
    while rows := events.after(start, deployment=deployment, most=limit + 1):
        found += selection.of(rows)
        start = rows[-1].number
        if len(found) > limit or len(rows) <= limit:
            break
    return page(found, limit, key=lambda row: row.number, shown=asdict)


async def _sent(batches: AsyncIterator[list[EventRow]]) -> AsyncIterator[str]:
    """Yield events in the form of a stream; a comment where there are none, as a sign of life."""
    yield "retry: 2000\n\n"
    async for rows in batches:
        if not rows:
            yield ": \n\n"
        for row in rows:
            yield f"id: {row.number}\ndata: {json.dumps(asdict(row))}\n\n"


@router.get("/audit", dependencies=[Depends(requires(Role.ADMIN))])
def audit(
    store: Store,
    target: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Return the changes, the newest first."""
    number = key_of(cursor)
    if not isinstance(number, int | None) or not 0 <= (number or 0) <= GREATEST:
        raise ConfigError("the cursor is not one of the audit log; give none to start over")
    if target is not None and not is_name(target):
        return page([], limit, key=str, shown=str)
    rows = store.audit.before(number, target=target, most=limit + 1)
    return page(rows, limit, key=lambda row: row.number, shown=asdict)
