"""A connection to RabbitMQ: pika's, with calls that wait, and with a short way for messages.

pika connects, logs in, speaks TLS and heartbeats, and handles every method. Messages and confirms pass it
by: an object for each frame, and another for each message, would be most of the work.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pika
from pika import frame
from pika.adapters.select_connection import IOLoop
from pika.exceptions import AMQPError, ChannelClosedByBroker
from typing_extensions import Self

from penstock import __version__
from penstock.errors import TransientError
from penstock.sinks.rabbitmq.amqp_failures import translated
from penstock.sinks.rabbitmq.broker_options import Broker

HEAD = struct.Struct(">BHI")
METHOD, HEADER, BODY, END = 1, 2, 3, 0xCE
DELIVER, RETURN, ACK, NACK = b"\0\x3c\0\x3c", b"\0\x3c\0\x32", b"\0\x3c\0\x50", b"\0\x3c\0\x78"
# pika logs each lost connection several times, with tracebacks; what matters is raised.
logging.getLogger("pika").setLevel(logging.CRITICAL)
Frames = Callable[[int, bytes, int, int], bool]
"""Takes a frame of the channel: its type, the bytes, and from where to where; False: pika takes it."""


class _Connection(pika.SelectConnection):  # type: ignore[misc]
    """pika's connection, which offers the frames of channel 1 to `frames` first."""

    frames: Frames | None = None
    _rest = b""

    def _on_data_available(self, data_in: bytes) -> None:
        data = self._rest + data_in if self._rest else data_in
        at, length = 0, len(data)
        while length - at >= 8:
            kind, channel, size = HEAD.unpack_from(data, at)
            end = at + 7 + size
            if end >= length:
                break
            # What is no frame at all (a version, as the first answer), pika recognizes.
            if not (channel == 1 and self.frames and self.frames(kind, data, at + 7, end)):
                self._rest = data[end + 1 :]
                self._process_frame(frame.decode_frame(data[at : end + 1])[1])
            at = end + 1
        self._rest = data[at:]


class AmqpConnection:
    """One connection with one channel. Every method waits for its reply, or raises why there is none."""

    def __init__(self, broker: Broker, purpose: str) -> None:
        self._broker = broker
        self._purpose = purpose
        self._loop: Any = IOLoop()
        self._connection: Any = None
        self._failure: BaseException | None = None
        self.channel: Any = None
        self.blocked: str | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect, log in, and open a channel."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        opened: list[Any] = []
        self._loop.activate_poller()
        self._connection = _Connection(
            self._parameters(),
            on_open_callback=opened.append,
            on_open_error_callback=self._failed,
            on_close_callback=self._failed,
            custom_ioloop=self._loop,
        )
        self.wait(lambda: opened, "connecting")
        self._connection.add_on_connection_blocked_callback(self._note_blocked)
        self._connection.add_on_connection_unblocked_callback(self._note_unblocked)
        self.open_channel()

    def open_channel(self) -> None:
        """Open the channel, again after the server has closed it."""
        opened: list[Any] = []
        self._failure = None
        self.channel = self._connection.channel(1, on_open_callback=opened.append)
        self.channel.add_on_close_callback(self._failed)
        self.wait(lambda: opened, "opening a channel")

    @property
    def is_open(self) -> bool:
        """Return whether nothing has closed the connection or its channel so far."""
        return self.channel is not None and self._failure is None

    @property
    def largest_frame(self) -> int:
        """Return how many bytes of a body a frame may have."""
        return int(self._connection.params.frame_max) - 8

    def take_frames(self, frames: Frames | None) -> None:
        """Let this function have the frames of the channel before pika does."""
        self._connection.frames = frames

    def call(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call a method of the channel, and return its reply."""
        replies: list[Any] = []
        self._raise_failure(method.__name__)
        try:
            method(*given, callback=replies.append, **named)
        except AMQPError as error:
            raise translated(error, self._broker, method.__name__) from None
        self.wait(lambda: replies, method.__name__)
        return replies[0].method

    def depth(self, queue: str) -> int:
        """Return how many messages of a queue wait for a consumer."""
        return int(self.call(self.channel.queue_declare, queue, passive=True).message_count)

    def write(self, data: bytes) -> None:
        """Send bytes that are whole frames; they are on their way when this connection is polled."""
        # pika has no other method for bytes; those that it has for messages make the bytes again.
        self._connection._output_marshaled_frames([data])

    @property
    def unsent(self) -> int:
        """Return how many bytes wait to be sent."""
        return int(self._connection._transport.get_write_buffer_size())

    def wait(self, done: Callable[[], Any], what: str, within: float | None = None) -> None:
        """Handle what comes until this is true."""
        limit = self._broker.timeout if within is None else within
        deadline = time.monotonic() + limit
        while not done():
            self._raise_failure(what)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TransientError(
                    f"{self._broker.at} did not reply within {limit:g} s ({what}); is it busy, or is "
                    "there a firewall?"
                )
            self.poll(left)

    def poll(self, within: float) -> None:
        """Handle what comes, once; return after this many seconds at most."""
        timer = self._loop.call_later(within, _nothing)
        try:
            self._loop.poll()
            self._loop.process_timeouts()
        finally:
            self._loop.remove_timeout(timer)

    def require_progress(self, since: float, longest_block: float) -> None:
        """Raise where nothing has happened for too long; a server that says it is full has longer."""
        limit = longest_block if self.blocked is not None else self._broker.timeout
        if time.monotonic() - since <= limit:
            return
        why = f"has blocked this connection: {self.blocked}" if self.blocked else "is silent"
        raise TransientError(f"{self._broker.at} {why}; nothing was confirmed for {limit:g} s")

    def check(self, what: str) -> None:
        """Raise where the connection or its channel was closed."""
        self._raise_failure(what)

    def close(self) -> None:
        """Close the connection; all that was written before is with the server then."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(AMQPError, TransientError, OSError):
            if connection.is_open:
                # Whoever has the frames goes on to have them: a message may be half there.
                connection.close()
            deadline = time.monotonic() + 5
            while not connection.is_closed and time.monotonic() < deadline:
                self.poll(0.5)
        with suppress(Exception):  # one that the server has left in the middle of something
            self._loop.deactivate_poller()
            self._loop.close()

    def _parameters(self) -> pika.ConnectionParameters:
        broker = self._broker
        tls = pika.SSLOptions(broker.tls.context(), broker.host) if broker.tls else None
        return pika.ConnectionParameters(
            host=broker.host,
            port=broker.port,
            virtual_host=broker.vhost,
            credentials=pika.PlainCredentials(broker.user, broker.password),
            heartbeat=broker.heartbeat,
            socket_timeout=broker.timeout,
            stack_timeout=broker.timeout,
            connection_attempts=1,
            ssl_options=tls,
            client_properties={"connection_name": self._purpose, "version": __version__},
        )

    def _failed(self, _of: Any, reason: BaseException) -> None:
        # A channel that the server closes says why; that the connection ends then says less.
        self._failure = self._failure or reason

    def _raise_failure(self, what: str) -> None:
        if self._failure is not None:
            raise translated(self._failure, self._broker, what) from None

    @property
    def channel_failure(self) -> ChannelClosedByBroker | None:
        """Return why the server has closed the channel, where it has."""
        return self._failure if isinstance(self._failure, ChannelClosedByBroker) else None

    def _note_blocked(self, _of: Any, method: Any) -> None:
        self.blocked = str(method.method.reason)

    def _note_unblocked(self, *_: Any) -> None:
        self.blocked = None


def _nothing() -> None:
    """Do nothing: the poll ends."""
