"""Names of topics and groups in addresses, checked before librdkafka gets them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Protocol

from fastapi import Path, Query

from penstock.errors import ConfigError
from penstock.server.paging import DEFAULT, MOST, after, page

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SHOWN = 100


class AuditLog(Protocol):
    """Writes a change to the audit log: `store.audit.add`."""

    def __call__(self, who: str, action: str, target: str, **detail: Any) -> None:
        """Store who did what to which target."""


TopicName = Annotated[str, Path(alias="topic", description="The topic's name.")]
GroupName = Annotated[str, Path(alias="group", description="The group's name.")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="The most items of the page.")]
Cursor = Annotated[
    str | None, Query(max_length=20_000, description="The `next` of the page before.")
]
DEFAULT_LIMIT = DEFAULT


def checked_topic(name: str) -> str:
    """Return the name of a topic; refuse what Kafka could not have.

    >>> checked_topic("../etc")
    Traceback (most recent call last):
    penstock.errors.ConfigError: '../etc' is not the name of a topic; allowed: 1 to 249 of letters, ...
    """
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ConfigError(
            f"{name[:_SHOWN]!r} is not the name of a topic; allowed: 1 to 249 of letters, digits, '.', "
            "'_' and '-'"
        )
    return name


def refuse_internal(topic: str) -> str:
    """Return the name of a topic; refuse to change one of Kafka itself."""
    if checked_topic(topic).startswith("__"):
        raise ConfigError(
            f"topic {topic!r} belongs to Kafka itself and is not changed here; use the command line"
        )
    return topic


def checked_group(name: str) -> str:
    """Return the name of a group; refuse what no client can send.

    >>> checked_group("")
    Traceback (most recent call last):
    penstock.errors.ConfigError: '' is not the name of a group; allowed: 1 to 255 printable characters
    """
    if not 1 <= len(name) <= 255 or not name.isprintable():
        raise ConfigError(
            f"{name[:_SHOWN]!r} is not the name of a group; allowed: 1 to 255 printable characters"
        )
    return name


def page_by_name(
    names: Iterable[str], contains: str, first: str, limit: int, shown: Callable[[str], Any]
) -> dict[str, Any]:
    """Return a page of the names after `first` that contain a text, in the order they come in.

    >>> page_by_name(["Ann", "Bob"], "b", "", 10, shown=lambda name: {"name": name})
    {'items': [{'name': 'Bob'}], 'next': None}
    """
    wanted = [name for name in names if name > first and contains.lower() in name.lower()]
    return page(wanted[: limit + 1], limit, str, shown)


def after_name(cursor: str | None) -> str:
    """Return the name after which a page begins; empty for the first one."""
    key = after(cursor)
    if key is None:
        return ""
    if not isinstance(key, str):
        raise ConfigError(
            f"{str(cursor)[:40]!r} is not a cursor of this list; give the 'next' of the page before"
        )
    return key
