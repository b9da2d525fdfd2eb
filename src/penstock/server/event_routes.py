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


@dataclass(frozen=True)
class Selection:
    """The events that a caller wants and may see."""

    store: ControlStore
    access: Access
    deployment: str | None

    def of(self, rows: list[EventRow]) -> list[EventRow]:
        """Return those of these events that belong to the selection."""
        mine = [row for row in rows if self.deployment in (None, row.deployment)]
        visible = self._visible() if mine else None
        return mine if visible is None else [row for row in mine if row.deployment in visible]

    def after(self, number: int, most: int = 1000) -> list[EventRow]:
        """Return stored events after a number, the oldest first."""
        return self.store.events.after(
            number, deployment=self.deployment, among=self._visible(), most=most
        )

    def newest(self, most: int) -> list[EventRow]:
        """Return the newest events, the oldest of them first."""
        return self.store.events.newest(most, deployment=self.deployment, among=self._visible())

    def _visible(self) -> set[str] | None:
        """Return the deployments that the caller may see; None for all."""
        everything = self.access.allows(Role.VIEWER)
        return None if everything else visible_names(self.store, self.access)


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
            start = number_before(selection.newest(tail))
        return streamed(feed, feed.listen(start, selection.of, selection.after), shown=asdict)
    if tail is not None:
        refuse_both(start)
        return {"items": [asdict(row) for row in selection.newest(tail)], "next": None}
    rows = selection.after(start or 0, limit + 1)
    return page(rows, limit, key=lambda row: row.number, shown=asdict)


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
