"""Rows with numbers as server-sent events, and the number that a reader starts after."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Header
from fastapi.responses import StreamingResponse

from penstock.errors import ConfigError
from penstock.server.app_state import GREATEST, Cursor, Number
from penstock.server.event_feed import EventFeed, Numbered, Row
from penstock.server.paging import after as key_of

STREAM = "text/event-stream"


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
    if type(number) is not int or not 0 <= number <= GREATEST:
        raise ConfigError("the cursor is not one of a list of events; give none to start over")
    return number


Start = Annotated[int | None, Depends(_start)]
"""The type of a route's parameter that is the number to start after."""


def refuse_both(start: int | None) -> None:
    """Refuse the newest rows and a start at the same time."""
    if start is not None:
        raise ConfigError("tail is given, and a start too (after, cursor); give one of them")


def number_before(rows: Sequence[Numbered]) -> int:
    """Return the number after which these rows come; 0 if there are none."""
    return rows[0].number - 1 if rows else 0


def streamed(
    feed: EventFeed[Row], rows: AsyncIterator[list[Row]], shown: Callable[[Row], Any]
) -> StreamingResponse:
    """Return the reply that is a stream of rows."""
    feed.require_room()
    return StreamingResponse(_sent(rows, shown), media_type=STREAM)


async def _sent(
    batches: AsyncIterator[list[Row]], shown: Callable[[Row], Any]
) -> AsyncIterator[str]:
    """Yield rows in the form of a stream; a comment where there are none, as a sign of life."""
    yield "retry: 2000\n\n"
    async for rows in batches:
        if not rows:
            yield ": \n\n"
        for row in rows:
            yield f"id: {row.number}\ndata: {json.dumps(shown(row))}\n\n"
