"""What routes use of their app: the store, the settings, the feed of events. Set by `create_app`."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Depends, Query, Request

from penstock.control.store import ControlStore
from penstock.control.store.rows import EventRow, LogRow
from penstock.server.authentication import Authenticator
from penstock.server.event_feed import EventFeed
from penstock.server.paging import DEFAULT, MOST
from penstock.server.settings import ServerSettings

GREATEST = 2**62
"""The greatest number that a parameter may have: both databases have integers of 64 bits."""


def _store(request: Request) -> ControlStore:
    return cast("ControlStore", request.app.state.store)


def _settings(request: Request) -> ServerSettings:
    return cast("ServerSettings", request.app.state.settings)


def _feed(request: Request) -> EventFeed[EventRow]:
    return cast("EventFeed[EventRow]", request.app.state.feed)


def _log_feed(request: Request) -> EventFeed[LogRow]:
    return cast("EventFeed[LogRow]", request.app.state.log_feed)


def end_streams(app: Any) -> None:
    """End all streams of an application, so that its server can stop; call it from any thread."""
    app.state.feed.close()
    app.state.log_feed.close()


def _users(request: Request) -> Authenticator:
    return cast("Authenticator", request.app.state.users)


async def _body(request: Request) -> bytes:
    return await request.body()


Store = Annotated[ControlStore, Depends(_store)]
Settings = Annotated[ServerSettings, Depends(_settings)]
Feed = Annotated[EventFeed[EventRow], Depends(_feed)]
LogFeed = Annotated[EventFeed[LogRow], Depends(_log_feed)]
Logins = Annotated[Authenticator, Depends(_users)]
Body = Annotated[bytes, Depends(_body)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="The most items of a page.")]
Cursor = Annotated[str | None, Query(max_length=1000, description="The 'next' of the page before.")]
Number = Annotated[int, Query(ge=0, le=GREATEST)]
Tail = Annotated[
    int | None, Query(ge=1, le=MOST, description="The newest ones, as many, instead of a page.")
]
PAGE = DEFAULT
