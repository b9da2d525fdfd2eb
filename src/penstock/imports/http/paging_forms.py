"""The forms of paging: what to ask for at a position, and the position after a page.

Each form is a value that is made from its options and a position. What a form imports from a page is
decided by the position alone, so that a page that is asked for again gives the same records, and the ones
after them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.config.printable import printable
from penstock.errors import ConfigError, TerminalError
from penstock.http.http_reply import Reply
from penstock.imports.http.json_text import Scalar
from penstock.imports.http.paging_options import Offset
from penstock.pipeline.importing import BadRecord, Position


@dataclass(frozen=True)
class Page:
    """A reply, its document and the records in it, as they came."""

    reply: Reply
    document: bytes
    elements: Sequence[bytes]


@dataclass(frozen=True)
class Target:
    """What a form adds to the request: parameters, or another address."""

    link: str | None = None
    params: dict[str, Scalar] = field(default_factory=dict)
    into_body: bool = False


@dataclass(frozen=True)
class Step:
    """What a page gives: the records that are new, and where to go on."""

    elements: Sequence[bytes]
    position: Position
    more: bool
    bad: tuple[BadRecord, ...] = ()


class PagingForm(ABC):
    """How an import goes from page to page."""

    # Whether a reply that is unchanged (304) says that nothing new is there.
    is_conditional = False

    def end_statuses(self, _position: Position) -> tuple[int, ...]:
        """Return the statuses that mean that there is no such page yet."""
        return ()

    def at_end(self, position: Position) -> Position:
        """Return the position after a reply that says that there is nothing more."""
        return position

    @abstractmethod
    def target(self, position: Position) -> Target:
        """Return what to ask for at a position."""

    @abstractmethod
    def step(self, position: Position, page: Page) -> Step:
        """Return what is new in the page that was asked for at a position."""


class WholeDocument(PagingForm):
    """No paging: each poll gives everything that the document has then."""

    is_conditional = True

    def target(self, _position: Position) -> Target:
        """Return nothing that changes the request."""
        return Target()

    def step(self, position: Position, page: Page) -> Step:
        """Return all records."""
        if not page.elements:
            return Step((), position, more=False)
        return Step(page.elements, next_poll(position), more=False)


class OffsetForm(PagingForm):
    """Pages by number. The position is how many records were imported."""

    def __init__(self, options: Offset) -> None:
        self._options = options

    def target(self, position: Position) -> Target:
        """Return the parameters of the page that has the next record."""
        options, done = self._options, number(position, "count")
        at = done if options.count == "records" else done // options.size
        params = {options.parameter: Scalar.given(options.first + at)}
        if options.size_parameter:
            params[options.size_parameter] = Scalar.given(options.size)
        return Target(params=params, into_body=options.into == "body")

    def end_statuses(self, position: Position) -> tuple[int, ...]:
        """Return the status after the last page; on the first page it is an error."""
        status = self._options.end_status
        return (status,) if status and number(position, "count") else ()

    def at_end(self, position: Position) -> Position:
        """Return the same position, or the start of the next poll."""
        is_done = self._options.at_end == "restart" and number(position, "count")
        return next_poll(position) if is_done else position

    def step(self, position: Position, page: Page) -> Step:
        """Return the records after those that were imported."""
        options, done = self._options, number(position, "count")
        by_page = options.count == "pages"
        if by_page and len(page.elements) > options.size:
            raise TerminalError(
                f"{page.reply} has {len(page.elements)} records, and 'size' is {options.size}: with "
                "'count: pages' it must be the size of a page"
            )
        seen = done % options.size if by_page else 0
        new = unseen(page, seen, position.get("digest"))
        is_last = len(page.elements) < options.size if by_page else not page.elements
        if is_last and options.at_end == "restart":
            return Step(new, next_poll(position), more=False)
        if not new:
            return Step((), position, more=False)
        partly = by_page and len(page.elements) % options.size
        after = {**poll_of(position), "count": done + len(new)}
        return Step(
            new, {**after, "digest": digest(page.elements)} if partly else after, not is_last
        )


def next_poll(position: Position) -> Position:
    """Return the position at the start of the next poll, for forms that import everything again."""
    return {"poll": number(position, "poll") + 1}


def poll_of(position: Position) -> Position:
    """Return the number of the poll, where there is one."""
    return {"poll": position["poll"]} if "poll" in position else {}


def number(position: Position, name: str) -> int:
    """Return a number of a position; 0 where it is missing."""
    value = position.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong_position(position, f"{name!r} is not a count")
    return value


def wrong_position(position: Position, why: str) -> ConfigError:
    """Return the error for a position that was set by hand, or is one of another form."""
    return ConfigError(
        f"the position {printable(str(position))[:300]} cannot be used: {why}; set another position, or "
        "delete this one, and everything is imported from the start"
    )


def unseen(page: Page, seen: int, expected: Any) -> Sequence[bytes]:
    """Return a page's records after the first ones, which must be those that were imported."""
    if not seen:
        return page.elements
    is_other = expected is not None and digest(page.elements[:seen]) != expected
    if is_other or len(page.elements) < seen:
        raise TerminalError(
            f"the first {seen} records of {page.reply} were imported, and are not the same now: what is "
            "new cannot be determined; this form of paging needs an API that only appends records. Use "
            "'since' with a time of change, or 'at_end: restart' to import everything with each poll"
        )
    return page.elements[seen:]


def digest(elements: Sequence[bytes]) -> str:
    """Return a short text that differs where records differ.

    >>> digest([b"1", b"2"]) == digest([b"12"])
    False
    """
    joined = hashlib.sha256()
    for element in elements:
        joined.update(b"%d:" % len(element) + element)
    return joined.hexdigest()[:32]
