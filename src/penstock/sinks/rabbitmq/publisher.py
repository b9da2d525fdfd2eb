"""Publishes messages with confirms in bulk: hundreds are on their way before the first is confirmed."""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from penstock.errors import RefusedError, TransientError
from penstock.sinks.rabbitmq.amqp_connection import (
    ACK,
    BODY,
    HEAD,
    HEADER,
    METHOD,
    NACK,
    RETURN,
    AmqpConnection,
)
from penstock.sinks.rabbitmq.amqp_values import WrongValueError, read_properties, write_short

_CONTENT = struct.Struct(">BHIHHQ")
_CONFIRM, _TAG, _CODE = struct.Struct(">QB"), struct.Struct(">Q"), struct.Struct(">H")
_BASIC = 60
_PUBLISH = b"\0\x3c\0\x28\0\0"
_MANDATORY = 1
_END = b"\xce"
# How many messages may be unconfirmed, and how many bytes wait for the socket.
_WINDOW, _UNSENT, _CHUNK = 20_000, 8 * 2**20, 128 * 2**10
# How long a server that has stopped taking messages (an alarm for memory or disk) is waited for.
_LONGEST_BLOCK = 600.0
_PRECONDITION_FAILED = 406
_MANY_KEYS = 10_000


class Message(NamedTuple):
    """A message to publish."""

    routing_key: str
    properties: bytes
    body: bytes


class Returned(NamedTuple):
    """A message that no queue got."""

    reason: str
    routing_key: bytes
    properties: bytes
    body: bytes


class Confirms:
    """Which of the messages of a channel are confirmed; they are numbered from 1.

    >>> confirms = Confirms(); confirms.sent = 5
    >>> confirms.add(2, False); confirms.add(1, False); confirms.add(4, False)
    >>> confirms.outstanding, confirms.is_confirmed(4), confirms.is_confirmed(3)
    (2, True, False)
    >>> confirms.add(5, True); confirms.outstanding
    0
    """

    def __init__(self) -> None:
        self.sent = 0
        self._low = 0
        self._above: set[int] = set()

    def add(self, tag: int, multiple: bool) -> None:
        """Note a confirm: of this message, or of all up to it."""
        if multiple:
            self._low = max(self._low, tag)
            self._above = {each for each in self._above if each > tag}
        elif tag > self._low:
            self._above.add(tag)
        while self._low + 1 in self._above:
            self._low += 1
            self._above.remove(self._low)

    @property
    def outstanding(self) -> int:
        """Return how many are not confirmed."""
        return self.sent - self._low - len(self._above)

    def is_confirmed(self, tag: int) -> bool:
        """Return whether this one is."""
        return tag <= self._low or tag in self._above


class Publisher:
    """Publishes to one exchange."""

    def __init__(self, connection: AmqpConnection, exchange: str, *, mandatory: bool) -> None:
        self._connection = connection
        self._exchange = write_short(exchange, "the exchange")
        self._bits = bytes((_MANDATORY if mandatory else 0,))
        self._methods: dict[str, bytes] = {}
        self._confirms = Confirms()
        self._nacked = 0
        self._returned: list[Returned] = []
        self._return: tuple[str, bytes] | None = None
        self._return_properties = b""
        self._return_body: list[bytes] = []
        self._return_missing = 0

    def begin(self) -> None:
        """Ask for confirms; again on a channel that was opened again."""
        self._confirms = Confirms()
        self._return = None
        connection = self._connection
        connection.call(connection.channel.confirm_delivery, ack_nack_callback=_never)
        connection.take_frames(self._frame)

    def send(self, messages: Sequence[Message]) -> dict[int, str]:
        """Publish messages, and wait until each is confirmed; return those that are refused, and why."""
        refused: dict[int, str] = {}
        self._send(messages, [*range(len(messages))], refused)
        return refused

    def _send(
        self, messages: Sequence[Message], rows: Sequence[int], refused: dict[int, str]
    ) -> None:
        before = self._confirms.sent
        try:
            self._publish([messages[row] for row in rows])
        except TransientError as error:
            failure = self._connection.channel_failure
            if failure is None or failure.reply_code != _PRECONDITION_FAILED:
                raise
            reason = str(failure.reply_text)
            open_rows = [
                row
                for number, row in enumerate(rows, before + 1)
                if not self._confirms.is_confirmed(number)
            ]
            self._note_returned(messages, rows, refused)
            if not open_rows:
                raise error from None
            self._connection.open_channel()
            self.begin()
            self._halves(messages, open_rows, reason, refused)
            return
        self._note_returned(messages, rows, refused)

    def _halves(
        self, messages: Sequence[Message], rows: list[int], reason: str, refused: dict[int, str]
    ) -> None:
        """Find the message for which the server closed the channel; it does not say which one."""
        if len(rows) == 1:
            refused[rows[0]] = reason
            return
        middle = len(rows) // 2
        self._send(messages, rows[:middle], refused)
        self._send(messages, rows[middle:], refused)

    def _publish(self, messages: Sequence[Message]) -> None:
        pieces: list[bytes] = []
        size = 0
        largest = self._connection.largest_frame
        for routing_key, properties, body in messages:
            length = len(body)
            pieces += (
                self._methods.get(routing_key) or self._method(routing_key),
                _CONTENT.pack(HEADER, 1, 12 + len(properties), _BASIC, 0, length),
                properties,
                _END,
            )
            for start in range(0, length, largest):
                part = body if length <= largest else body[start : start + largest]
                pieces += (HEAD.pack(BODY, 1, len(part)), part, _END)
            self._confirms.sent += 1
            size += length + 150
            if size >= _CHUNK:
                self._write(b"".join(pieces))
                pieces, size = [], 0
        if pieces:
            self._write(b"".join(pieces))
        self._wait(0, 0)
        if self._nacked:
            count, self._nacked = self._nacked, 0
            raise TransientError(
                f"RabbitMQ did not take {count} messages (nack): a queue is full (x-overflow: "
                "reject-publish), or its node failed"
            )

    def _write(self, data: bytes) -> None:
        self._connection.check("publishing")
        self._connection.write(data)
        self._connection.poll(0)
        if self._confirms.outstanding > _WINDOW or self._connection.unsent > _UNSENT:
            self._wait(_WINDOW // 2, _UNSENT // 2)

    def _wait(self, unconfirmed: int, unsent: int) -> None:
        """Wait until no more than these are unconfirmed and unsent; a server that goes on is not late."""
        connection, confirms = self._connection, self._confirms
        last, since = (-1, -1), time.monotonic()
        while confirms.outstanding > unconfirmed or connection.unsent > unsent:
            connection.check("publishing")
            connection.poll(1.0)
            now = (confirms.outstanding, connection.unsent)
            if now != last:
                last, since = now, time.monotonic()
            connection.require_progress(since, _LONGEST_BLOCK)
        connection.check("publishing")

    def _method(self, routing_key: str) -> bytes:
        if len(self._methods) >= _MANY_KEYS:
            self._methods.clear()
        payload = (
            _PUBLISH + self._exchange + write_short(routing_key, "the routing key") + self._bits
        )
        made = HEAD.pack(METHOD, 1, len(payload)) + payload + _END
        return self._methods.setdefault(routing_key, made)

    # -- what comes back

    def _frame(self, kind: int, data: bytes, start: int, end: int) -> bool:
        if kind == METHOD:
            method = data[start : start + 4]
            if method in (ACK, NACK):
                tag, multiple = _CONFIRM.unpack_from(data, start + 4)
                before = self._confirms.outstanding
                self._confirms.add(tag, bool(multiple & 1))
                if method == NACK:
                    self._nacked += before - self._confirms.outstanding
                return True
            if method == RETURN:
                self._return = _returned_method(data[start + 4 : end])
                return True
            return False
        if self._return is None:
            return False
        if kind == HEADER:
            (self._return_missing,) = _TAG.unpack_from(data, start + 4)
            self._return_properties = data[start + 12 : end]
        else:
            self._return_body.append(data[start:end])
            self._return_missing -= end - start
        if self._return_missing <= 0:
            body = b"".join(self._return_body)
            self._returned.append(Returned(*self._return, self._return_properties, body))
            self._return, self._return_body = None, []
        return True

    def _note_returned(
        self, messages: Sequence[Message], rows: Sequence[int], refused: dict[int, str]
    ) -> None:
        """Find the rows of returned messages: by routing key, id and body, as no number comes back."""
        if not self._returned:
            return
        known: dict[tuple[bytes, bytes, bytes], list[int]] = defaultdict(list)
        for row in reversed(rows):
            message = messages[row]
            known[_identity(message.routing_key.encode(), message.properties, message.body)].append(
                row
            )
        returned, self._returned = self._returned, []
        for each in returned:
            same = known.get(_identity(each.routing_key, each.properties, each.body))
            if not same:
                raise RefusedError(f"RabbitMQ returned a message: {each.reason}")
            refused[same.pop()] = each.reason


def _identity(routing_key: bytes, properties: bytes, body: bytes) -> tuple[bytes, bytes, bytes]:
    try:
        message_id = read_properties(properties).get("message_id") or b""
    except WrongValueError:
        message_id = b""
    return routing_key, message_id, body


def _returned_method(data: bytes) -> tuple[str, bytes]:
    (code,) = _CODE.unpack_from(data)
    at = 3 + data[2]
    text = data[3:at].decode(errors="replace")
    exchange_end = at + 1 + data[at]
    exchange = data[at + 1 : exchange_end].decode(errors="replace")
    key = data[exchange_end + 1 : exchange_end + 1 + data[exchange_end]]
    shown = key.decode(errors="replace")
    reason = f"{code} {text}: no queue of the exchange {exchange!r} has the routing key {shown!r}"
    return reason, key


def _never(*_: object) -> None:
    """Stand for the callback that pika wants; the frames are taken before it would be called."""
