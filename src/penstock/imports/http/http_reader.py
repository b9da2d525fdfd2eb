"""Reads an API in a task: a request, its records, the position after them; page by page.

Each page is one transaction, and is requested before that begins: however slow the server is, readers of
the topic do not wait for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from penstock import __version__
from penstock.config.models import remember_secrets
from penstock.errors import TerminalError
from penstock.http.http_auth import authorization, with_params
from penstock.http.http_client import Ask, HttpClient
from penstock.http.http_reply import Reply
from penstock.imports.http.json_text import Pointer, Scalar, checked, compact, elements
from penstock.imports.http.linked_forms import CursorForm, LinkForm
from penstock.imports.http.paging_forms import (
    OffsetForm,
    Page,
    PagingForm,
    Step,
    Target,
    WholeDocument,
    wrong_position,
)
from penstock.imports.http.paging_options import Cursor, NextLink, Offset, Since
from penstock.imports.http.request_pace import Pace
from penstock.imports.http.since_form import SinceForm
from penstock.pipeline.importing import BadRecord, Portion, Position, Reader

if TYPE_CHECKING:
    from penstock.imports.http.http_import import HttpImport

_VALIDATORS = ("etag", "modified", "of")


class HttpReader(Reader):
    """An API, from a position on."""

    def __init__(self, options: HttpImport, position: Position | None) -> None:
        self._options = options
        # A task runs in another process than the one that read the definition.
        remember_secrets([options.headers, options.params, options.body])
        auth = authorization(options.auth, options.ca, options.timeout)
        self._client = HttpClient(
            auth, options.ca, options.allow_hosts, options.max_bytes, options.timeout
        )
        self._pace = Pace(options.url, options.rate)
        self._form = self._paging_form()
        self._position = self._checked(position or {})
        self._records = Pointer.read(options.records) if options.records is not None else None
        self._key = Pointer.read(options.key) if options.key is not None else None
        self._has_ended = False

    def take(self, most: int) -> Iterator[Portion]:  # noqa: ARG002 - a page is never divided
        """Yield the next page; nothing where it has nothing new."""
        if self._has_ended:
            return
        before, ask = self._bare(), self._ask()
        self._pace.wait()
        ends = (204, 304, *self._form.end_statuses(before))
        reply = self._client.send(ask, ends)
        step = Step((), self._form.at_end(before), more=False)
        validators = self._own_validators()
        if reply.status not in ends:
            step = self._form.step(before, self._page(reply))
            validators = {} if step.more else self._validators(ask, reply)
        is_same = step.position == before and validators == self._own_validators()
        self._has_ended = not step.more or is_same
        if step.elements or step.bad or not is_same:
            records, bad = self._as_records(step.elements)
            self._position = {"paging": self._options.form, **step.position, **validators}
            yield Portion(records, self._position, (*step.bad, *bad))

    # -- the request

    def _paging_form(self) -> PagingForm:
        chosen = self._options.paging.chosen if self._options.paging else None
        if isinstance(chosen, NextLink):
            return LinkForm(chosen, self._check_link, self._options.secret_parameter)
        if isinstance(chosen, Offset):
            return OffsetForm(chosen)
        if isinstance(chosen, Cursor):
            return CursorForm(chosen)
        return SinceForm(chosen) if isinstance(chosen, Since) else WholeDocument()

    def _check_link(self, source: str, target: str) -> None:
        self._client.require_allowed(source, target, "the next link")

    def _checked(self, position: Position) -> Position:
        form = position.get("paging", self._options.form)
        if form != self._options.form:
            raise wrong_position(
                position, f"it is one of the paging {form!r}, and {self._options.form!r} is given"
            )
        return position

    def _bare(self) -> Position:
        """Return the position as the form of paging knows it."""
        without = ("paging", *_VALIDATORS)
        return {name: value for name, value in self._position.items() if name not in without}

    def _own_validators(self) -> Position:
        return {name: self._position[name] for name in _VALIDATORS if name in self._position}

    def _ask(self) -> Ask:
        options, target = self._options, self._form.target(self._bare())
        params = {name: _text(value) for name, value in options.params.items()}
        if not target.into_body:
            params |= {name: value.text for name, value in target.params.items()}
        url = with_params(options.url, params) if target.link is None else target.link
        if target.link is not None:
            self._check_link(options.url, url)
        body = self._body(target)
        headers = {"Accept": "application/json", "User-Agent": f"penstock/{__version__}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        ask = Ask(url, options.method, {**headers, **options.headers}, body)
        return self._conditional(ask)

    def _body(self, target: Target) -> bytes | None:
        body: Any = self._options.body
        if target.into_body:
            body = {**body, **{name: value.as_json() for name, value in target.params.items()}}
        if body is None or isinstance(body, str):
            return None if body is None else body.encode()
        return msgspec.json.encode(body)

    def _conditional(self, ask: Ask) -> Ask:
        """Return the request for what has changed, where the position is of the same request."""
        position = self._position
        if not self._form.is_conditional or position.get("of") != _identity(ask):
            return ask
        names = {"If-None-Match": "etag", "If-Modified-Since": "modified"}
        given = {name: str(position[key]) for name, key in names.items() if key in position}
        return Ask(ask.url, ask.method, {**ask.headers, **given}, ask.body)

    def _validators(self, ask: Ask, reply: Reply) -> Position:
        """Return what makes the same request conditional the next time."""
        if not self._form.is_conditional or ask.method != "GET":
            return {}
        etag, modified = reply.headers.get("ETag"), reply.headers.get("Last-Modified")
        if not etag and not modified:
            return {}
        given = {"etag": etag} if etag else {"modified": modified}
        return {**given, "of": _identity(ask)}

    # -- the reply

    def _page(self, reply: Reply) -> Page:
        try:
            body = reply.body
            charset = reply.headers.get_content_charset("utf-8")
            if charset not in ("utf-8", "us-ascii", "utf8"):
                body = body.decode(charset).encode()
            document = checked(body)
        except (ValueError, LookupError) as error:
            raise TerminalError(
                f"{reply} is not JSON: {error}; check 'url', and whether the API needs a header 'Accept'"
            ) from None
        return Page(reply, document, self._elements(reply, document))

    def _elements(self, reply: Reply, document: bytes) -> list[bytes]:
        if self._records is None:
            return elements(document) if document[:1] == b"[" else [document]
        found = self._records.find(document)
        if found is None or found[:1] not in b"[{":
            what = "nothing" if found is None else "neither an array nor an object"
            raise TerminalError(
                f"{reply} has {what} at {self._records.text!r}, where its records should be; "
                "check 'records'"
            )
        return elements(found) if found[:1] == b"[" else [found]

    def _as_records(self, given: Any) -> tuple[pa.RecordBatch, list[BadRecord]]:
        keys, values, bad = [], [], []
        for element in given:
            try:
                value = compact(element)
                key = self._key_of(value)
            except ValueError as error:
                bad.append(BadRecord(element, str(error)))
            else:
                keys.append(key)
                values.append(value)
        columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
        return pa.record_batch(columns), bad

    def _key_of(self, value: bytes) -> bytes | None:
        if value == b"null":
            raise ValueError("the record is null")
        if self._key is None:
            return None
        found = self._key.find(value)
        if found is None or found == b"null":
            what = "nothing" if found is None else "null"
            raise ValueError(
                f"the record has {what} at {self._key.text!r}, where its key should be"
            )
        scalar = Scalar.read(found)
        return scalar.text.encode() if scalar else found.removeprefix(b'""')


def _identity(ask: Ask) -> str:
    return hashlib.sha256(f"{ask.method} {ask.url}".encode()).hexdigest()[:16]


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
