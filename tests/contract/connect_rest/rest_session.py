"""Sends the requests of the comparison to a server, and keeps what can be compared of the replies."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

from tests.contract.connect_rest.known_differences import difference_of
from tests.contract.connect_rest.rest_case import Case, Reply, compared

_DEADLINE = 40.0
_SETTLED = 5.0
_READING = ("GET", "HEAD", "OPTIONS")
_BUSY = ("rebalance", "stale configuration")
_UNSORTED = re.compile(r"(?<={).*(?=} contains no connector type)|(?<=insensitive\): ).*")
_OWN = ("worker_id", "trace", "last_modified", "kafka_cluster_id", "documentation")
_UNORDERED = ("tasks", "offsets")


class RestSession:
    """One server, at whose address requests are sent exactly as a case has them.

    `work` lets the server's worker act, where it does so only when it is asked to.
    """

    def __init__(self, url: str, folder: str, work: Callable[[], None] = lambda: None) -> None:
        self._at = urlsplit(url)
        self._folder = folder
        self._work = work

    def replies(
        self, cases: Iterable[Case], expected: Mapping[str, Reply] | None = None
    ) -> dict[str, Reply]:
        """Return the replies by the names of the cases.

        What is read may be some moments old in Connect: a reading is repeated until it is as expected.
        """
        known = expected or {}
        return {case.name: self._reply(case, known.get(case.name)) for case in cases}

    def _reply(self, case: Case, expected: Reply | None) -> Reply:
        for name, states in case.settled.items():
            self._await(name, states)
        began = time.monotonic()
        end = began + _DEADLINE
        while True:
            reply = self._ask(case)
            if case.method not in _READING and reply.status < 300:
                self._work()
            same = _is_same(case, reply, expected) or time.monotonic() > began + _SETTLED
            if (same and _is_ready(case, reply)) or time.monotonic() > end:
                return reply
            time.sleep(0.05)

    def _await(self, name: str, wanted: str) -> None:
        ask = Case("", "GET", f"/connectors/{quote(name, safe='')}/status")
        end = time.monotonic() + _DEADLINE
        while (found := _states(self._ask(ask).body)) != wanted:
            assert time.monotonic() < end, f"{name} is {found}, not {wanted}"
            self._work()
            time.sleep(0.02)

    def _ask(self, case: Case) -> Reply:
        connection = HTTPConnection(self._at.hostname or "", self._at.port, timeout=_DEADLINE)
        content = case.content
        if content is not None:
            content = content.replace(b"{dir}", self._folder.encode())
        try:
            connection.request(case.method, case.path, content, dict(case.sent_headers))
            found = connection.getresponse()
            data = found.read()
        finally:
            connection.close()
        allow = found.getheader("Allow") if found.status == 200 else None
        location = found.getheader("Location")
        kind = found.getheader("Content-Type")
        return Reply(
            found.status,
            kind.partition(";")[0].lower() if kind else None,
            location and location.replace(f"http://{self._at.netloc}", ""),
            tuple(sorted(each.strip() for each in allow.split(","))) if allow else None,
            self._plain(_read(data)),
        )

    def _plain(self, body: Any) -> Any:
        """Return a body without what differs between any two servers."""
        if isinstance(body, dict):
            return {key: self._member(key, value) for key, value in body.items()}
        if isinstance(body, list):
            return [self._plain(each) for each in body]
        return _text(body.replace(self._folder, "{dir}")) if isinstance(body, str) else body

    def _member(self, key: str, value: Any) -> Any:
        if value is not None and key in _OWN:
            return f"<{key}>"
        found = self._plain(value)
        if key == "recommended_values":
            return [each for each in found if not each.startswith("io.confluent.")]
        return sorted(found, key=str) if key in _UNORDERED and isinstance(found, list) else found


def _is_same(case: Case, reply: Reply, expected: Reply | None) -> bool:
    if expected is None or case.method not in _READING or difference_of(case.name):
        return True
    return compared(case, reply) == compared(case, expected)


def _is_ready(case: Case, reply: Reply) -> bool:
    if reply.status in (409, 500) and any(each in str(reply.body) for each in _BUSY):
        return False
    if case.path.endswith("/status") and isinstance(reply.body, dict):
        # The states may change once more between the wait and the request.
        wanted = case.settled.get(reply.body.get("name", ""))
        if wanted is not None and _states(reply.body) != wanted:
            return False
    return bool(case.until(reply.body))


def _text(text: str) -> str:
    """Return an error without the list of classes, and in an order where Java's maps have none."""
    head, known, _ = text.partition("available connectors are:")
    return _UNSORTED.sub(lambda found: str(sorted(found[0].split(", "))), head + known)


def _read(data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def _states(body: Any) -> str:
    if not isinstance(body, dict) or "connector" not in body:
        return str(body)
    tasks = [f"{task['id']}:{task['state']}" for task in body["tasks"]]
    return " ".join([body["connector"]["state"], *sorted(tasks)])
