"""Sends rows to an HTTP service: one request for each, or for several; what it refuses is named."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import local

import pyarrow as pa

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.errors import ConfigError, TransientError
from penstock.http.busy_wait import BusyWait
from penstock.http.http_auth import authorization
from penstock.http.http_client import Ask
from penstock.http.http_options import Auth
from penstock.http.http_reply import Reply, retry_after
from penstock.http.http_session import HttpSession
from penstock.http.reply_limit import ReplyStart
from penstock.sinks.http.request_rows import RequestForm, RequestRows
from penstock.sinks.messages import Outlet, RecordIds, Refusal

# How much of a reply is in a dead letter.
_SHOWN_OF_REPLY = 2_000
_READ_OF_REPLY = 1 << 16
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class HttpTarget:
    """The service and what its replies mean; sent to tasks."""

    method: str
    auth: Auth | None
    ca: str | None
    timeout: float
    success: frozenset[int]
    retry_statuses: frozenset[int]
    retry_time: float
    parallel: int
    form: RequestForm

    def open(self) -> HttpOutlet:
        """Return the outlet."""
        return HttpOutlet(self)


class HttpOutlet(Outlet):
    """Sends requests, one after the other, or some at a time."""

    def __init__(self, target: HttpTarget) -> None:
        self._target = target
        self._ids = RecordIds()
        self._sessions: list[HttpSession] = []
        self._own = local()
        many = target.parallel > 1
        self._threads = ThreadPoolExecutor(target.parallel) if many else None

    def close(self) -> None:
        """Wait for the requests that are under way, and close the connections."""
        if self._threads:
            self._threads.shutdown(cancel_futures=True)
        for session in self._sessions:
            session.close()

    def send(self, rows: pa.RecordBatch) -> Iterator[Refusal]:
        """Send the rows, each confirmed by a status of success; return those that are refused."""
        given = RequestRows(self._target.form, rows, self._ids.of(rows))
        yield from given.refused
        if self._threads is None:
            for part in given.parts():
                yield from self._deliver(given, part)
        else:
            yield from self._in_parallel(self._threads, given)

    def _in_parallel(self, threads: ThreadPoolExecutor, given: RequestRows) -> Iterator[Refusal]:
        """Send several requests at a time; a few more wait, so that no thread has nothing to do."""
        begun: deque[Future[list[Refusal]]] = deque()
        for part in given.parts():
            begun.append(threads.submit(self._delivered, given, part))
            if len(begun) >= 2 * self._target.parallel:
                yield from begun.popleft().result()
        while begun:
            yield from begun.popleft().result()

    def _delivered(self, given: RequestRows, rows: range) -> list[Refusal]:
        return [*self._deliver(given, rows)]

    def _deliver(self, given: RequestRows, rows: range) -> Iterator[Refusal]:
        headers, body = given.headers(rows), given.body(rows)
        reply = self._replied(Ask(given.url(rows[0]), self._target.method, headers, body))
        if reply is None:
            return
        if len(rows) > 1:
            # Refused as a whole: halves show which rows the service does not want.
            middle = len(rows) // 2
            yield from self._deliver(given, rows[:middle])
            yield from self._deliver(given, rows[middle:])
            return
        yield Refusal(given.number(rows[0]), f"http_{reply.status}", _reason(reply))

    def _replied(self, ask: Ask) -> Reply | None:
        """Return a reply that refuses the request; None where it was accepted."""
        waiting = BusyWait(self._target.retry_time)
        while True:
            try:
                reply = self._session().send(ask)
            except TransientError as away:
                waiting.wait(str(away), 0.0)
                continue
            if reply.status in self._target.success:
                return None
            if reply.status not in self._target.retry_statuses:
                if reply.status == 401:
                    raise ConfigError(f"{reply} refuses the credentials; check 'auth'")
                return reply
            waiting.wait(f"{reply} is busy or away", retry_after(reply, 0.0))

    def _session(self) -> HttpSession:
        """Return the connection of this thread."""
        if not hasattr(self._own, "session"):
            target = self._target
            auth = authorization(target.auth, target.ca, target.timeout)
            limit = ReplyStart(_READ_OF_REPLY, target.timeout)
            self._own.session = HttpSession(auth, target.ca, target.timeout, limit)
            self._sessions.append(self._own.session)
        session: HttpSession = self._own.session
        return session


def statuses(given: Iterable[int | str]) -> frozenset[int]:
    """Return the statuses of a list; `5xx` is a hundred of them.

    >>> sorted(statuses([408, "20x"]))[:3], len(statuses(["5xx"]))
    ([200, 201, 202], 100)
    """
    found: set[int] = set()
    for each in map(str, given):
        digits = each.lower()
        low, high = int(digits.replace("x", "0")), int(digits.replace("x", "9"))
        found.update(range(low, high + 1))
    return frozenset(found)


def _reason(reply: Reply) -> str:
    body = printable(mask(reply.body[:_SHOWN_OF_REPLY].decode("utf-8", "replace")))
    if reply.status in _REDIRECTS:
        target = printable(mask(reply.headers.get("Location", "")))
        return f"HTTP {reply.status} redirects to {target}, which is not followed; give it in 'url'"
    return f"HTTP {reply.status} {body}".strip()
