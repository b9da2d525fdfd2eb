"""One request of the comparison with Connect: what is sent, what is awaited before, what is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

JSON = {"Content-Type": "application/json"}
# Connect's errors of these kinds have no type, although their bodies are JSON.
_UNTYPED = (404, 405, 406, 415)
View = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A request. `body`: bytes are sent as they are, everything else as JSON.

    `settled` names connectors with the states that are awaited before the request, as
    `{"orders": "RUNNING 0:RUNNING"}`; the request is repeated `until` its body is right; `view` returns
    the part of the body that is compared.
    """

    name: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    view: View | None = None
    until: View = lambda _body: True

    @property
    def content(self) -> bytes | None:
        """Return the bytes of the body."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()

    @property
    def sent_headers(self) -> dict[str, str]:
        """Return the headers: those of JSON unless the case has a type of its own."""
        typed = any(name.lower() == "content-type" for name in self.headers)
        headers = {**({} if self.body is None or typed else JSON), **self.headers}
        return {name: value for name, value in headers.items() if value is not None}


@dataclass(frozen=True)
class Reply:
    """What came back, as far as it is compared."""

    status: int
    kind: str | None
    location: str | None
    allow: tuple[str, ...] | None
    body: Any


def compared(case: Case, reply: Reply) -> Reply:
    """Return the part of a reply that is compared."""
    kind, body = reply.kind, reply.body
    if kind is None and reply.status in _UNTYPED:
        kind = "application/json"
    if case.view is not None and reply.status == 200:
        body = case.view(body)
    return replace(reply, kind=kind, body=body)


class Cases:
    """Collects cases whose names are their request, with a note where a request occurs twice."""

    def __init__(self, area: str) -> None:
        self._area = area
        self._found: list[Case] = []

    def add(self, method: str, path: str, body: Any = None, note: str = "", **more: Any) -> None:
        """Add a request."""
        name = f"{self._area}: {method} {path}{f' ({note})' if note else ''}"
        self._found.append(Case(name, method, path, body, **more))

    def __iter__(self) -> Iterator[Case]:
        return iter(self._found)
