"""The import `http`: its options, and when the API is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.http.http_client import tls_context
from penstock.http.http_options import ApiKey, Auth, HeaderName, Url
from penstock.imports.http.http_reader import HttpReader
from penstock.imports.http.paging_options import JsonPointer, Paging
from penstock.pipeline.importing import Import, Part, Place, Position, Reader, System, key_of
from penstock.pipeline.values import Duration

# Headers that the client writes itself, or that would change what a reply is.
_OWN_HEADERS = frozenset(
    {
        "host", "content-length", "transfer-encoding", "connection", "accept-encoding", "range",
        "if-none-match", "if-modified-since",
    }
)  # fmt: skip


class HttpImport(Import):
    """Records of an HTTP API that gives JSON, polled page by page.

    Each record is imported once, where the API only appends records or has a value that grows: the
    position after a page is written with its records. What a form of paging needs for that:

    - `offset`: records stay in their order, new ones come last, none are removed.
    - `cursor`, `next_link`: a cursor or address stays valid; where the last page has none, this page is
      requested again, and may only have got more records. This is checked.
    - `since`: a new or changed record has a value that is not less than those before it. Records with
      the same value are distinguished by their content. A record that is changed is imported again.
    - no paging, or `at_end: restart`: every poll imports everything again, unless the reply is unchanged
      (`ETag`, `Last-Modified`; without paging only).

    A page is one transaction, of any size up to `max_bytes`. Values are the records as compact JSON,
    each number with the digits that it came with.
    """

    name = "http"
    main_option = "url"

    url: Url = Field(description="The address, with http or https.")
    method: Literal["GET", "POST"] = Field(default="GET", description="How it is asked.")
    headers: dict[HeaderName, str] = Field(default={}, description="Headers of each request.")
    params: dict[str, str | int | float | bool] = Field(
        default={}, description="Parameters that are added to the address."
    )
    body: dict[str, Any] | list[Any] | str | None = Field(
        default=None, description="The body of a POST: data that is sent as JSON, or a text."
    )
    records: JsonPointer | None = Field(
        default=None,
        description="JSON pointer to the array of records in the document, as `/data/items`; default: "
        "the document itself, an array or one record.",
    )
    key: JsonPointer | None = Field(
        default=None, description="JSON pointer to the key in each record; default: no key."
    )
    paging: Paging | None = Field(default=None, description="How pages follow each other.")
    auth: Auth | None = Field(default=None, description="Who asks.")
    rate: float | None = Field(
        default=None, gt=0, le=10_000, description="The most requests a second."
    )
    timeout: Duration = Field(
        default=30.0, gt=0, description="The longest time for a request and its reply."
    )
    max_bytes: int = Field(
        default=64 * 2**20, ge=1, description="The largest reply, in bytes; it is kept in memory."
    )
    ca: str | None = Field(
        default=None,
        description="PEM file of the authorities to trust, on each machine that runs tasks; default: "
        "those of the machine.",
    )
    allow_hosts: tuple[str, ...] = Field(
        default=(),
        description="Other hosts (`name` or `name:port`) to which redirects and next links may lead; "
        "they get the same credentials.",
    )

    @field_validator("headers")
    @classmethod
    def _are_ours_to_give(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if name.lower() in _OWN_HEADERS:
                raise ValueError(
                    f"the header {name!r} is written by the import itself; leave it out"
                )
            if any(ord(letter) < 32 and letter != "\t" for letter in value):
                raise ValueError(f"the header {name!r} has a control character in its value")
            if not value.isascii():
                raise ValueError(f"the header {name!r} has a value that is not ASCII; encode it")
        return headers

    @field_validator("allow_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if "/" in host or not host.strip():
                raise ValueError(f"{host!r} is not a host; give 'name' or 'name:port'")
        return tuple(host.strip().lower() for host in hosts)

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        chosen = self.paging.chosen if self.paging else None
        if self.body is not None and self.method == "GET":
            raise ValueError("'body' is given and 'method' is GET; give 'method: POST' or no body")
        if getattr(chosen, "into", "query") == "body" and not isinstance(self.body, dict):
            raise ValueError(
                f"'into: body' in 'paging.{self.form}' needs 'method: POST' and a mapping as 'body' "
                "(it may be empty), which gets the parameter"
            )
        if self.auth and not isinstance(self.auth.chosen, ApiKey):
            for name in self.headers:
                if name.lower() == "authorization":
                    raise ValueError("credentials are in 'auth' and in the header 'Authorization'")
        return self

    @property
    def form(self) -> str:
        """Return the name of the paging form; `none` without paging."""
        given = self.paging.model_fields_set if self.paging else ()
        return next(iter(given), "none")

    @property
    def repeats(self) -> bool:
        """Return whether each poll begins at the start."""
        chosen = self.paging.chosen if self.paging else None
        return chosen is None or getattr(chosen, "at_end", "wait") == "restart"

    @property
    def secret_parameter(self) -> str | None:
        """Return the parameter that has a key: it is not stored in positions."""
        chosen = self.auth.chosen if self.auth else None
        return chosen.parameter if isinstance(chosen, ApiKey) else None

    def system(self) -> System:
        """Return the API as the driver sees it."""
        tls_context(self.ca)
        return HttpSystem(self)


@dataclass(frozen=True)
class HttpPart(Part):
    """The API: one part, whose pages come one after the other."""

    options: HttpImport

    @property
    def place(self) -> Place:
        """Return the address without its parameters, which may change while records stay the same."""
        split = urlsplit(self.options.url)
        return {"url": urlunsplit((split.scheme, split.netloc.lower(), split.path, "", ""))}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Prepare to read; the first request is sent when a page is taken."""
        yield HttpReader(self.options, position)


class HttpSystem(System):
    """When the API is asked: always, or once in each poll where a poll imports everything again."""

    def __init__(self, options: HttpImport, clock: Callable[[], float] = time.monotonic) -> None:
        self._part = HttpPart(options)
        self._options = options
        self._clock = clock
        self._polls: int | None = None
        self._due = 0.0

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the one part, unless a poll has just ended and the next one is not due."""
        if not self._options.repeats:
            return [self._part]
        polls = positions.get(key_of(self._part.place), {}).get("poll", 0)
        now = self._clock()
        if self._polls is not None and polls != self._polls:
            # A little less, because it is asked again after exactly this time.
            self._due = now + 0.9 * self._options.poll
        self._polls = polls
        return [self._part] if now >= self._due else []
