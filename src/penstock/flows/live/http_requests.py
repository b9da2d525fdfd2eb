"""Requests of steps over connections that stay open; one session for each thread."""

from __future__ import annotations

from collections.abc import Sequence
from threading import local
from typing import Any

from penstock.errors import PenstockError
from penstock.flows.definition.http_request import HttpOptions
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.publish.operations import HttpPublish
from penstock.flows.running.systems import HttpReply, HttpRequest, PublishRequest, Receipt
from penstock.flows.steps.http_step import require_success
from penstock.http.http_auth import authorization
from penstock.http.http_client import Ask
from penstock.http.http_session import HttpSession
from penstock.http.reply_limit import ReplyLimit

_MOST_SESSIONS = 50


class HttpRequests:
    """Sends the requests of a process."""

    def __init__(self) -> None:
        self._threads = local()

    def send(self, _step: str, options: HttpOptions, request: HttpRequest) -> HttpReply:
        """Return the reply; raise Fault where there is none."""
        ask = Ask(request.url, request.method, request.headers, request.body)
        try:
            reply = self._session(options).send(ask)
        except PenstockError as error:
            raise self._fault(error, options) from error
        return HttpReply(reply.status, dict(reply.headers.items()), reply.body)

    def publish(
        self, step: str, operation: HttpPublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Send a request for each message, and return the statuses."""
        return [self._published(step, operation, each.fields["request"]) for each in requests]

    def _published(
        self, step: str, operation: HttpPublish, request: HttpRequest
    ) -> Receipt | Fault:
        try:
            reply = self.send(step, operation, request)
            require_success(reply, operation.success)
        except Fault as fault:
            return fault
        return {"status": reply.status}

    def _fault(self, error: PenstockError, options: HttpOptions) -> Fault:
        if "timed out" in str(error) or "not complete after" in str(error):
            return Fault("CORE:TIMEOUT", f"{error} (timeout: {options.timeout:g} s)")
        found = fault_of(error, "HTTP")
        return found if found.code != "CORE:RUNTIME" else Fault("HTTP:REFUSED", str(error))

    def _sessions(self) -> dict[int, tuple[Any, HttpSession]]:
        if not hasattr(self._threads, "sessions"):
            self._threads.sessions = {}
        found: dict[int, tuple[Any, HttpSession]] = self._threads.sessions
        return found

    def _session(self, options: HttpOptions) -> HttpSession:
        sessions = self._sessions()
        known = sessions.get(id(options))
        if known is None:
            if len(sessions) >= _MOST_SESSIONS:
                sessions.pop(next(iter(sessions)))[1].close()
            auth = authorization(options.auth, options.ca, options.timeout)
            limit = ReplyLimit(options.max_bytes, options.timeout)
            # The options are stored, too: another object must not get their id.
            known = options, HttpSession(auth, options.ca, options.timeout, limit)
            sessions[id(options)] = known
        return known[1]
