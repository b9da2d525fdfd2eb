"""The forms in which each page says how to get the next one: by its address, or by a cursor.

The last page says nothing: it is asked for again, and has more records then, or a next page. How many of
its records were imported is part of the position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from penstock.errors import TerminalError
from penstock.http.http_auth import without_param
from penstock.http.http_client import joined
from penstock.http.http_reply import shown
from penstock.imports.http.json_text import Pointer, Scalar
from penstock.imports.http.paging_forms import (
    Page,
    PagingForm,
    Step,
    Target,
    digest,
    next_poll,
    number,
    poll_of,
    unseen,
    wrong_position,
)
from penstock.imports.http.paging_options import Cursor, NextLink
from penstock.pipeline.importing import Position

Check = Callable[[str, str], None]
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))', re.IGNORECASE)


class LinkForm(PagingForm):
    """Each page has the address of the next one; `check` raises where it must not be followed."""

    def __init__(self, options: NextLink, check: Check, secret_parameter: str | None) -> None:
        self._at_end = options.at_end
        self._pointer = Pointer.read(options.pointer) if options.pointer is not None else None
        self._check = check
        self._secret_parameter = secret_parameter
        self._way = _Way("next_link")
        # A body can be unchanged while its header `Link` is new.
        self.is_conditional = self._pointer is not None and options.at_end == "wait"

    def target(self, position: Position) -> Target:
        """Return the address of the page."""
        return Target(link=_text(position, "link"))

    def step(self, position: Position, page: Page) -> Step:
        """Return what is new, and the next address where there is one."""
        new = unseen(page, number(position, "seen"), position.get("digest"))
        if link := self._next(page):
            self._way.go(page, page.reply.url, link)
            return Step(new, {**poll_of(position), "link": link}, more=True)
        return at_last_page(position, page, new, self._at_end, ("link",))

    def _next(self, page: Page) -> str | None:
        given = self._given(page)
        if not given:
            return None
        link = joined(page.reply.url, given, "the next link")
        self._check(page.reply.url, link)
        if self._secret_parameter:
            link = without_param(link, self._secret_parameter)
        return None if link == page.reply.url else link

    def _given(self, page: Page) -> str | None:
        if self._pointer is None:
            return next_of(page.reply.headers.get_all("Link") or [])
        value = self._pointer.find(page.document)
        if value in (None, b"null", b'""', b"false"):
            return None
        link = Scalar.read(value)
        if link is None or link.is_number:
            raise TerminalError(
                f"{page.reply} has no address at {self._pointer.text!r}: a text is expected, or null on "
                "the last page; check 'paging: {next_link: ...}'"
            )
        return link.text


class CursorForm(PagingForm):
    """Each page has a cursor for the next one."""

    def __init__(self, options: Cursor) -> None:
        self._options = options
        self._pointer = Pointer.read(options.pointer)
        self._more = Pointer.read(options.more) if options.more is not None else None
        self._way = _Way("cursor")

    def target(self, position: Position) -> Target:
        """Return the cursor as a parameter; none on the first page, unless one is given."""
        cursor = self._cursor(position)
        params = {self._options.parameter: cursor} if cursor else {}
        return Target(params=params, into_body=self._options.into == "body")

    def step(self, position: Position, page: Page) -> Step:
        """Return what is new, and the next cursor where there is one."""
        new = unseen(page, number(position, "seen"), position.get("digest"))
        cursor = self._next(page)
        if cursor is None or cursor == self._cursor(position):
            return at_last_page(position, page, new, self._options.at_end, ("cursor", "number"))
        self._way.go(page, (self._cursor(position) or Scalar("")).text, cursor.text)
        after = {**poll_of(position), "cursor": cursor.text}
        if cursor.is_number:
            after["number"] = True
        return Step(new, after, self._has_more(page))

    def _cursor(self, position: Position) -> Scalar | None:
        text, start = _text(position, "cursor"), self._options.start
        if text is not None:
            return Scalar(text, bool(position.get("number")))
        return Scalar.given(start) if start is not None else None

    def _next(self, page: Page) -> Scalar | None:
        value = self._pointer.find(page.document)
        cursor = Scalar.read(value)
        if cursor is None and value not in (None, b"null", b'""', b"false"):
            raise TerminalError(
                f"{page.reply} has no cursor at {self._pointer.text!r}: a text or a number is expected, "
                "or null on the last page; check 'paging: {cursor: ...}'"
            )
        return cursor

    def _has_more(self, page: Page) -> bool:
        if self._more is None:
            return bool(page.elements)
        value = self._more.find(page.document)
        if value not in (b"true", b"false"):
            raise TerminalError(
                f"{page.reply} has neither true nor false at {self._more.text!r}; check 'more' of "
                "'paging: {cursor: ...}'"
            )
        return value == b"true"


class _Way:
    """The pages that a reader has taken: one that leads back to them would be imported forever."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._taken: set[str] = set()

    def go(self, page: Page, here: str, there: str) -> None:
        """Note a page, and raise where the next one was taken already."""
        self._taken.add(here)
        if there in self._taken:
            raise TerminalError(
                f"{page.reply} leads back to a page that was imported just now ({shown(there)}), and its "
                f"records would be imported again and again; check 'paging: {{{self._form}: ...}}'"
            )


def at_last_page(
    position: Position, page: Page, new: Sequence[bytes], at_end: str, names: tuple[str, ...]
) -> Step:
    """Return the step of a page that has no next one: it is asked for again, or the first one is."""
    if at_end == "restart":
        return Step(new, next_poll(position), more=False)
    if not new:
        return Step((), position, more=False)
    here = {name: position[name] for name in names if name in position}
    seen = {"seen": len(page.elements), "digest": digest(page.elements)}
    return Step(new, {**here, **seen}, more=False)


def next_of(headers: Sequence[str]) -> str | None:
    """Return the next page's address of the headers `Link` (RFC 8288).

    >>> next_of(['<https://a/?p=1>; rel="first", <https://a/?p=3,4>; title="x"; rel="next last"'])
    'https://a/?p=3,4'
    """
    for link in (link for header in headers for link in _LINK.finditer(header)):
        for rel in _REL.finditer(link[2]):
            if "next" in (rel[1] or rel[2] or "").lower().split():
                return link[1]
    return None


def _text(position: Position, name: str) -> str | None:
    value = position.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong_position(position, f"{name!r} is not a text")
    return value
