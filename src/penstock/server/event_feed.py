"""Events and lines of logs as they happen: one reader of the store for all who listen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from anyio import to_thread

from penstock.config.logs import event_logger
from penstock.errors import PenstockError
from penstock.server.problems import RefusedRequestError
from penstock.server.settings import StreamSettings

_BUFFERED, _PAGE = 100, 1000
_log = event_logger(__name__)


class Numbered(Protocol):
    """A row with a number; later rows have greater ones."""

    @property
    def number(self) -> int:
        """Return the number."""
        ...


Row = TypeVar("Row", bound=Numbered)
Read = Callable[[int], Sequence[Row]]
"""Returns rows after a number, the oldest first, at most a thousand."""
Wanted = Callable[[list[Row]], list[Row]]
"""Which of these rows a listener may see; it may ask the store, so it runs in a thread."""


class EventFeed(Generic[Row]):
    """Reads new rows every second while there are listeners, and passes them to all.

    A listener that is too slow is ended: it comes back with the number of its last row.

    Parameters
    ----------
    what
        What the rows are, for messages.
    read
        Returns rows after a number.
    newest
        Returns the number of the newest row.
    """

    def __init__(
        self, what: str, read: Read[Row], newest: Callable[[], int], settings: StreamSettings
    ) -> None:
        self._what = what
        self._rows_after = read
        self._newest = newest
        self._settings = settings
        self._listeners: set[_Listener[Row]] = set()
        self._reader: asyncio.Task[None] | None = None
        self._starting: asyncio.Lock | None = None
        self._last = 0
        self._closed = False

    def require_room(self) -> None:
        """Refuse one listener too many."""
        if self._closed or len(self._listeners) >= self._settings.most:
            raise RefusedRequestError(
                503,
                f"{len(self._listeners)} streams of {self._what} are open, and {self._settings.most} "
                "are allowed; ask again later, or ask without a stream",
                Retry_After="5",
            )

    def close(self) -> None:
        """End all streams, so that a server can stop; call it from any thread."""
        self._closed = True

    async def listen(
        self, after: int | None, wanted: Wanted[Row], read: Read[Row] | None = None
    ) -> AsyncIterator[list[Row]]:
        """Yield rows after a number (None: from now on) in their order; an empty list now and then.

        The stream ends after a while, and whoever listens asks again: rights may have changed. `read`
        returns stored rows with the same selection as `wanted`, where the store can make it.
        """
        listener: _Listener[Row] = _Listener()
        self._listeners.add(listener)
        try:
            await self._start()
            last = self._last if after is None else await self._known(after)
            yield []
            async for rows in self._earlier(last, read or self._rows_after):
                last = rows[-1].number
                yield await to_thread.run_sync(wanted, list(rows))
            async for rows in self._later(listener):
                new = [row for row in rows if row.number > last]
                yield await to_thread.run_sync(wanted, new) if new else []
        finally:
            self._listeners.discard(listener)

    async def _known(self, after: int) -> int:
        """Return a number to start after; one of a store that was replaced may be in the future."""
        if after <= self._last:
            return after
        return min(after, await to_thread.run_sync(self._newest))

    async def _earlier(self, last: int, read: Read[Row]) -> AsyncIterator[Sequence[Row]]:
        """Yield the stored rows after a number."""
        while rows := await to_thread.run_sync(read, last):
            last = rows[-1].number
            yield rows
            if len(rows) < _PAGE:
                return

    async def _later(self, listener: _Listener[Row]) -> AsyncIterator[list[Row]]:
        """Yield what the reader finds, until the stream is too old or too slow."""
        end = time.monotonic() + self._settings.seconds
        quiet = time.monotonic()
        while time.monotonic() < end and not self._closed and not listener.is_late:
            try:
                rows = await asyncio.wait_for(listener.queue.get(), self._settings.every)
            except asyncio.TimeoutError:
                rows = []
            if rows or time.monotonic() - quiet >= self._settings.heartbeat:
                quiet = time.monotonic()
                yield rows

    async def _start(self) -> None:
        """Start the reader, at the newest row, if it does not run."""
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._reader is None or self._reader.done():
                self._last = await to_thread.run_sync(self._newest)
                self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while self._listeners and not self._closed:
            await asyncio.sleep(self._settings.every)
            rows: Sequence[Row] = ()
            while rows := await self._next(rows):
                self._last = rows[-1].number
                for listener in self._listeners:
                    listener.add(list(rows))

    async def _next(self, before: Sequence[Row]) -> Sequence[Row]:
        """Return the next rows; none after a page that was not full."""
        if 0 < len(before) < _PAGE:
            return ()
        try:
            return await to_thread.run_sync(self._rows_after, self._last)
        except PenstockError as error:
            _log.warning(f"{self._what} cannot be read", error=str(error))
            return ()


class _Listener(Generic[Row]):
    def __init__(self) -> None:
        self.queue: asyncio.Queue[list[Row]] = asyncio.Queue(_BUFFERED)
        self.is_late = False

    def add(self, rows: list[Row]) -> None:
        try:
            self.queue.put_nowait(rows)
        except asyncio.QueueFull:
            self.is_late = True
