"""Messages of a topic: a bounded look into it, and some records written to it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.control.roles import Access, Role
from penstock.errors import ConfigError
from penstock.formats import Format
from penstock.formats.registry import Registry
from penstock.kafka import Position
from penstock.record import Record
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import ConnectionName, Connections
from penstock.server.kafka.kafka_names import AuditLog, TopicName, checked_topic, refuse_internal
from penstock.server.kafka.message_browsing import Browsing
from penstock.server.kafka.message_filter import MessageFilter, pointer_of
from penstock.server.kafka.message_range import cursor_of, position, range_of, spans_of, within
from penstock.server.kafka.message_values import ValueReader, registered_format
from penstock.server.kafka.message_writing import NewMessages, PlainJson, drafts_of, write

Viewer = Annotated[Access, Depends(requires(Role.VIEWER))]
Operator = Annotated[Access, Depends(requires(Role.OPERATOR))]
Text = Annotated[str, Field(max_length=1000)]
# What a page may have, whatever the limit is.
_PAGE_BYTES = 8 * 1024 * 1024


class Wanted(BaseModel):
    """Which messages, and how they are shown."""

    model_config = ConfigDict(extra="forbid")

    order: Literal["newest", "oldest"] = Field(default="newest", description="What comes first.")
    start: str = Field(
        default="earliest",
        alias="from",
        max_length=100,
        description="Where the range begins: earliest, an offset, -10 (the last 10), a time or an age.",
    )
    until: str = Field(default="latest", max_length=100, description="Where it ends, excluded.")
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1)
    key: Text | None = Field(default=None, description="The whole key.")
    value: Text | None = Field(default=None, description="A text that the value contains.")
    pointer: Text | None = Field(default=None, description="A JSON pointer into the value.")
    equals: Text | None = Field(default=None, description="What the pointer leads to.")
    header: list[Text] = Field(default=[], max_length=20, description="NAME or NAME=VALUE.")
    format: str = Field(default="auto", max_length=50, description="The format of values.")
    key_format: str = Field(default="auto", max_length=50, description="The format of keys.")
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    limit: int = Field(default=50, ge=1, le=500)
    value_bytes: int = Field(
        default=100_000, ge=4, le=1_000_000, description="Longer values are cut off."
    )
    seconds: float = Field(default=5.0, gt=0, le=30, description="For the search.")
    cursor: str | None = Field(default=None, max_length=100_000)
    connection: str | None = Field(default=None, max_length=200)

    def filter(self, start: Position, stop: Position) -> MessageFilter:
        """Return the conditions. Offsets for a time are only near it where times are not in order."""
        return MessageFilter(
            key=self.key,
            value=self.value,
            pointer=pointer_of(self.pointer, self.equals),
            equals=self.equals,
            headers=tuple(self.header),
            since=start.value if start.kind == "time" else None,
            before=stop.value if stop.kind == "time" else None,
        )


def messages_router(connections: Connections, audit: AuditLog) -> APIRouter:
    """Return the routes of messages."""
    router = APIRouter(tags=["messages"], route_class=CheckedRoute)

    @router.get("/topics/{topic}/messages")
    def browse(_caller: Viewer, topic: TopicName, wanted: Annotated[Wanted, Query()]) -> Response:
        """Return messages of a range, the newest or the oldest first. No group is joined.

        A page ends with its limit, after some seconds of search, and where it becomes too large: go on
        with `next` and the same parameters until that is null.
        """
        return _reply(_browsed(connections, checked_topic(topic), wanted))

    @router.post("/topics/{topic}/messages", status_code=201)
    def produce(
        caller: Operator, topic: TopicName, body: NewMessages, connection: ConnectionName = None
    ) -> dict[str, Any]:
        """Write records, and return when all in-sync replicas have them."""
        name = refuse_internal(topic)
        registry = connections.registry()
        form = None if body.format is None else _to_write(body.format, registry)
        with connections.admin(connection) as admin:
            partitions = len(admin.partitions([name]))  # a broker may create missing topics
        drafts = drafts_of(body.records, name, form)
        for number, draft in enumerate(drafts):
            if draft.partition is not None and draft.partition >= partitions:
                raise ConfigError(
                    f"records[{number}]: topic {name!r} has no partition {draft.partition}; it has 0 "
                    f"to {partitions - 1}; nothing was written"
                )
        audit(caller.user, "messages.produce", name, records=len(drafts), connection=connection)
        with connections.place(connection) as place:
            return {"items": write(place, name, drafts)}

    return router


def _browsed(connections: Connections, topic: str, wanted: Wanted) -> dict[str, Any]:
    registry = connections.registry()
    values = ValueReader(wanted.format, registry)
    keys = ValueReader(wanted.key_format, registry)
    start, stop = position(wanted.start), position(wanted.until)
    chosen = wanted.filter(start, stop)
    left = None if wanted.cursor is None else spans_of(wanted.cursor)
    with connections.admin(wanted.connection) as admin:
        spans = range_of(admin, topic, wanted.partition, start, stop)
    if left is not None:
        spans = within(left, spans)
    browsing = Browsing(
        topic, wanted.limit, wanted.order == "newest", wanted.seconds, wanted.isolation
    )
    with connections.place(wanted.connection) as place:
        page = browsing.read(place, spans, lambda record: chosen.wants(record, values, keys))
    items: list[bytes] = []
    size = 0
    for record in page.records:
        shown = orjson.dumps(_document(record, values, keys, wanted.value_bytes))
        size += len(shown)
        if items and size > _PAGE_BYTES:
            span = page.rest[record.partition]
            page.rest[record.partition] = span.including(record.offset)
            continue
        items.append(shown)
    return {
        "items": [orjson.Fragment(item) for item in items],
        "next": cursor_of(page.rest),
        "scanned": page.scanned,
    }


def _document(record: Record, values: ValueReader, keys: ValueReader, most: int) -> dict[str, Any]:
    plain = ValueReader("text")
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": keys.read(record.key, record.topic).document(most),
        "value": values.read(record.value, record.topic).document(most),
        "headers": [
            {"name": name, "value": plain.read(data, record.topic).document(most)}
            for name, data in record.headers
        ],
        "tombstone": record.value is None,
    }


def _to_write(form: str, registry: Registry | None) -> Format:
    name = form.lower()
    if name == "auto":
        raise ConfigError("format 'auto' is for reading; name the format to write, as json or long")
    if name == "json":
        return PlainJson()
    return registered_format(name, registry, use_latest=True)


def _reply(document: dict[str, Any]) -> Response:
    return Response(orjson.dumps(document), media_type="application/json")
