"""Logs of deployments and workers, in pages, the newest lines, or as a stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.logs import LEVELS, LogFilter
from penstock.control.store.rows import LogRow
from penstock.errors import ConfigError, NotFoundError, nearest
from penstock.server.app_state import PAGE, Limit, LogFeed, Store, Tail
from penstock.server.caller import Caller, requires
from penstock.server.deployment_access import find_visible, is_name, visible_names
from penstock.server.event_stream import Start, number_before, refuse_both, streamed
from penstock.server.paging import page

router = APIRouter(tags=["logs"])
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SINCE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,20})?)([smhd]?)")


@dataclass(frozen=True)
class LogSelection:
    """The lines that a caller wants and may see."""

    store: ControlStore
    access: Access
    wanted: LogFilter

    def of(self, rows: list[LogRow]) -> list[LogRow]:
        """Return those of these lines that belong to the selection."""
        mine = [row for row in rows if self.wanted.accepts(row)]
        if not mine or self.access.allows(Role.VIEWER):
            return mine
        visible = self.wanted.deployment in visible_names(self.store, self.access)
        return mine if visible else []

    def after(self, number: int, most: int = 1000) -> Sequence[LogRow]:
        """Return stored lines after a number, the oldest first."""
        return self.store.logs.after(number, self.wanted, most=most)

    def newest(self, most: int) -> list[LogRow]:
        """Return the newest lines, the oldest of them first."""
        return self.store.logs.newest(self.wanted, most)


def _filter(
    store: Store,
    level: Annotated[str | None, Query(max_length=40, description="The lowest level.")] = None,
    since: Annotated[
        str | None,
        Query(max_length=40, description="A duration before now, as 10m; or seconds since 1970."),
    ] = None,
) -> LogFilter:
    if level is not None and level.lower() not in LEVELS:
        raise ConfigError(f"level is {level!r}; {nearest(level, list(LEVELS))}")
    lowest = None if level is None else level.lower()
    return LogFilter(level=lowest, since=None if since is None else _moment(store, since))


def _moment(store: ControlStore, text: str) -> float:
    """Return a time of the database."""
    given = _SINCE.fullmatch(text)
    if given is None:
        raise ConfigError(
            f"since is {text!r}; give a duration before now, as 30s, 10m, 2h or 1d, or seconds since 1970"
        )
    number = float(given[1])
    return store.database.time() - number * _UNITS[given[2]] if given[2] else number


Filter = Annotated[LogFilter, Depends(_filter)]


def _of_deployment(name: str, store: Store, access: Caller, given: Filter) -> LogSelection:
    find_visible(store, access, name)
    return LogSelection(store, access, replace(given, deployment=name))


def _of_worker(id: str, store: Store, access: Caller, given: Filter) -> LogSelection:
    requires(Role.VIEWER)(access)
    ids = [worker.id for worker in store.workers.all()]
    if id not in ids and not (is_name(id) and store.logs.has_worker(id)):
        hint = nearest(id, ids) if ids else "there are none"
        raise NotFoundError(f"there is no worker {id[:200]!r}; {hint}")
    return LogSelection(store, access, replace(given, worker=id))


OfDeployment = Annotated[LogSelection, Depends(_of_deployment)]
OfWorker = Annotated[LogSelection, Depends(_of_worker)]


@router.get("/deployments/{name}/logs")
def deployment_logs(
    lines: OfDeployment, start: Start, limit: Limit = PAGE, tail: Tail = None
) -> dict[str, Any]:
    """Return what the runs of a deployment logged, the oldest line first."""
    return _listed(lines, start, limit, tail)


@router.get("/deployments/{name}/logs/stream", response_model=None)
def deployment_log_stream(
    lines: OfDeployment, start: Start, feed: LogFeed, tail: Tail = None
) -> Response:
    """Return lines after a number, or new ones, as server-sent events."""
    return _streamed(lines, start, feed, tail)


@router.get("/workers/{id}/logs")
def worker_logs(
    lines: OfWorker, start: Start, limit: Limit = PAGE, tail: Tail = None
) -> dict[str, Any]:
    """Return what a worker logged that belongs to no deployment, the oldest line first."""
    return _listed(lines, start, limit, tail)


@router.get("/workers/{id}/logs/stream", response_model=None)
def worker_log_stream(lines: OfWorker, start: Start, feed: LogFeed, tail: Tail = None) -> Response:
    """Return lines of a worker after a number, or new ones, as server-sent events."""
    return _streamed(lines, start, feed, tail)


def _listed(lines: LogSelection, start: int | None, limit: int, tail: int | None) -> dict[str, Any]:
    if tail is not None:
        refuse_both(start)
        return {"items": [_shown(row) for row in lines.newest(tail)], "next": None}
    rows = lines.after(start or 0, limit + 1)
    return page(rows, limit, key=lambda row: row.number, shown=_shown)


def _streamed(lines: LogSelection, start: int | None, feed: LogFeed, tail: int | None) -> Response:
    if tail is not None and start is None:  # who comes back goes on where the stream ended
        start = number_before(lines.newest(tail))
    return streamed(feed, feed.listen(start, lines.of, lines.after), shown=_shown)


def _shown(row: LogRow) -> dict[str, Any]:
    return asdict(row) | {"deployment": row.deployment or None}
