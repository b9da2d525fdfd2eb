"""Collects the messages that RabbitMQ delivers, from the frames of the connection."""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.sinks.rabbitmq.amqp_connection import BODY, DELIVER, HEADER, METHOD

_TAG, _SIZE = struct.Struct(">Q"), struct.Struct(">Q")
# What of a message that is too large is kept, for its dead letter.
_BEGINNING = 500_000


class Delivery(NamedTuple):
    """A message: its tag, and bytes that are read later."""

    tag: int
    # Whether it was delivered before, its exchange and its routing key.
    route: bytes
    properties: bytes
    # The first bytes, where it is too large.
    body: bytes
    size: int


class Deliveries:
    """Messages in the order of their delivery, and how many bytes their bodies have."""

    def __init__(self, consumer: bytes, largest: int) -> None:
        self.waiting: list[Delivery] = []
        self.size = 0
        self._largest = largest
        # From the beginning of the method to the tag: ids, and the consumer's name with its length.
        self._tag_at = 4 + 1 + len(consumer)
        self._tag = -1
        self._route = self._properties = b""
        self._missing = self._full = self._kept = 0
        self._pieces: list[bytes] = []

    def frame(self, kind: int, data: bytes, start: int, end: int) -> bool:
        """Take a frame if it is one of a delivery."""
        if kind == METHOD:
            if data[start : start + 4] != DELIVER:
                return False
            at = start + self._tag_at
            (self._tag,) = _TAG.unpack_from(data, at)
            self._route = data[at + 8 : end]
            return True
        if self._tag < 0:
            return False
        if kind == HEADER:
            (self._full,) = _SIZE.unpack_from(data, start + 4)
            self._properties = data[start + 12 : end]
            self._missing = self._full
            if not self._full:
                self._finish(b"")
            return True
        if kind == BODY:
            self._take_body(data, start, end)
            return True
        return False

    def take(self, most: int) -> list[Delivery]:
        """Return the oldest messages, and forget them."""
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        self.size = sum(len(each.body) for each in self.waiting)
        return taken

    def _take_body(self, data: bytes, start: int, end: int) -> None:
        self._missing -= end - start
        if self._missing <= 0 and not self._pieces:
            self._finish(data[start:end])  # nearly always: one frame
            return
        # Of one that is too large, whatever its size, only the beginning is kept.
        if self._full <= self._largest or self._kept < _BEGINNING:
            self._pieces.append(data[start:end])
            self._kept += end - start
        if self._missing <= 0:
            self._finish(b"".join(self._pieces))
            self._pieces, self._kept = [], 0

    def _finish(self, body: bytes) -> None:
        self.waiting.append(Delivery(self._tag, self._route, self._properties, body, self._full))
        self.size += len(body)
        self._tag = -1
