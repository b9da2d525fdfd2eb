"""A connection to an AMQP 1.0 broker: Python's socket and TLS, proton's engine for the protocol.

proton's own reactor would do the same with a Python call for each event. Here its state is looked at
after each exchange of bytes: the caller says what it waits for.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import proton
from proton import Described, Endpoint, Terminus, symbol

from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.sinks.jms.jms_broker import Broker

# A frame is at most this large, and this much of messages is received before they are read.
_FRAME, _WINDOW = 16_384, 16 * 2**20
# The broker must send something this often, in seconds; otherwise the connection is lost.
_SILENCE = 60.0
_UNDESCRIBED: Any = proton.UNDESCRIBED
_SELECTOR = "apache.org:selector-filter:string"
# Conditions of a broker that repeating does not change.
_LASTING = frozenset(
    {
        "amqp:unauthorized-access", "amqp:not-found", "amqp:not-allowed", "amqp:invalid-field",
        "amqp:not-implemented", "amqp:precondition-failed",
    }
)  # fmt: skip
# How Artemis says that a right is missing, sometimes with the condition of an internal error.
_NO_RIGHT = "does not have permission"


class AmqpConnection:
    """One connection with one session."""

    def __init__(self, broker: Broker, client_id: str | None = None) -> None:
        self.broker = broker
        self._client_id = client_id or f"penstock-{uuid4()}"
        self._socket: socket.socket | None = None
        self._connection = proton.Connection()
        self._transport = proton.Transport()
        self.session = self._connection.session()
        self.used = time.monotonic()

    def open(self) -> None:
        """Connect, authenticate and open the session."""
        self._socket = _connected(self.broker)
        try:
            self._authenticate()
            self._connection.container = self._client_id
            self._connection.hostname = self.broker.host
            self._transport.max_frame_size = _FRAME
            self._transport.idle_timeout = _SILENCE
            self._transport.bind(self._connection)
            self._connection.open()
            self.session.incoming_capacity = _WINDOW
            self.session.open()
            self.wait(lambda: self.session.state & Endpoint.REMOTE_ACTIVE, "opening a connection")
        except BaseException:
            self.drop()
            raise

    def _authenticate(self) -> None:
        sasl = self._transport.sasl()
        sasl.allowed_mechs(self.broker.mechanism)
        # TLS is Python's here: proton cannot know that the connection is encrypted.
        sasl.allow_insecure_mechs = True
        if self.broker.username is not None and self.broker.password is not None:
            self._connection.user = self.broker.username
            self._connection.password = self.broker.password.get_secret_value()

    # -- links

    def receiver(
        self, address: str, name: str, capabilities: tuple[str, ...], selector: str | None = None
    ) -> Any:
        """Return a link for receiving, not open yet."""
        link = self.session.receiver(name)
        link.source.address = address
        _put(link.source.capabilities, capabilities)
        if selector:
            described = Described(symbol(_SELECTOR), selector)
            link.source.filter.put_dict({symbol(_SELECTOR): described})
        return link

    def sender(self, address: str, capability: str) -> Any:
        """Return a link for sending, not open yet."""
        link = self.session.sender(f"penstock-{uuid4()}")
        link.target.address = address
        _put(link.target.capabilities, (capability,))
        return link

    def attach(self, link: Any, what: str) -> None:
        """Open a link; raise where the broker refuses it."""
        link.open()
        self.wait(lambda: link.state & (Endpoint.REMOTE_ACTIVE | Endpoint.REMOTE_CLOSED), what)
        remote = link.remote_target if link.is_sender else link.remote_source
        if remote.type == Terminus.UNSPECIFIED:  # the reason follows
            self.wait(lambda: link.state & Endpoint.REMOTE_CLOSED, what)
        self.check(link, what)

    def check(self, link: Any, what: str) -> None:
        """Raise where the broker has closed a link."""
        if link.state & Endpoint.REMOTE_CLOSED:
            raise self._closed(link.remote_condition, what)

    # -- bytes

    def wait(self, condition: Callable[[], Any], what: str) -> None:
        """Exchange bytes until the condition holds; raise after the timeout, or where all is lost."""
        deadline = time.monotonic() + self.broker.timeout
        while not condition():
            self._require_open(what)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TransientError(
                    f"{self.broker} did not reply within {self.broker.timeout:g} s: {what}"
                )
            self.exchange(left)

    def wait_for_bytes(self, most: float, what: str) -> None:
        """Exchange bytes once, and wait at most that long if there are none."""
        self._require_open(what)
        self.exchange(most)

    def exchange(self, most: float) -> None:
        """Send and receive what there is, and wait at most that long if there is nothing."""
        try:
            moved = self._sends()
            moved = self._receives() or moved
            if not moved:
                self._sleep(min(most, 5.0))
        except ssl.SSLError as error:
            raise _tls_error(error, self.broker) from error
        except OSError as error:
            raise TransientError(f"the connection to {self.broker} was lost: {error}") from error
        except proton.ProtonException as error:
            raise TransientError(f"{self.broker} broke the protocol: {error}") from error

    def flush(self, what: str) -> None:
        """Exchange bytes until everything is sent."""
        self.wait(lambda: self._transport.pending() <= 0, what)

    def _sends(self) -> bool:
        self.used = time.monotonic()
        self._transport.tick(self.used)
        waiting = self._transport.pending()
        if waiting <= 0 or self._socket is None:
            return False
        try:
            sent = self._socket.send(self._transport.peek(waiting) or b"")
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False
        self._transport.pop(sent)
        return sent > 0

    def _receives(self) -> bool:
        room = self._transport.capacity()
        if room <= 0 or self._socket is None:
            return False
        try:
            data = self._socket.recv(room)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        if not data:
            self._transport.close_tail()
            self._require_open("receiving")
            raise TransientError(f"{self.broker} closed the connection")
        self._transport.push(data)
        return True

    def _sleep(self, most: float) -> None:
        if self._socket is None:
            return
        # Not select(), which knows only the first 1024 files of a process.
        wanted = select.POLLIN | (select.POLLOUT if self._transport.pending() > 0 else 0)
        poll = select.poll()
        poll.register(self._socket, wanted)
        poll.poll(most * 1000)

    # -- the end

    def close(self) -> None:
        """Close, and let the broker confirm it: everything before was received then."""
        if self._socket is None:
            return
        with suppress(PenstockError):
            self._connection.close()
            self.wait(
                lambda: self._connection.state & Endpoint.REMOTE_CLOSED, "closing a connection"
            )
        self.drop()

    def drop(self) -> None:
        """Close the socket silently."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _require_open(self, what: str) -> None:
        condition = self._transport.condition
        if condition and self._transport.sasl().outcome not in (None, proton.SASL.OK):
            raise ConfigError(
                f"{self.broker} refused to authenticate {self._who()}: check the user, the password and "
                f"that the broker offers {self.broker.mechanism}"
            )
        if self._connection.state & Endpoint.LOCAL_CLOSED:
            return
        if self._connection.state & Endpoint.REMOTE_CLOSED:
            raise self._closed(self._connection.remote_condition, what)
        if self._socket is None or self._transport.closed or condition:
            reason = f": {condition.description or condition.name}" if condition else ""
            raise TransientError(f"the connection to {self.broker} was lost{reason}")
        if self.session.state & Endpoint.REMOTE_CLOSED:
            raise self._closed(self.session.remote_condition, what)

    def _who(self) -> str:
        if self.broker.username is not None:
            return f"the user {self.broker.username!r}"
        return "a client by its certificate" if self.broker.certificate else "an anonymous client"

    def _closed(self, condition: Any, what: str) -> PenstockError:
        return refusal_of(condition, f"{self.broker}, {what}")


def refusal_of(condition: Any, what: str) -> PenstockError:
    """Return the error for the reason that a broker gives: one that lasts, or one that passes."""
    name = condition.name if condition else "no reason given"
    text = f" ({str(condition.description)[:500]})" if condition and condition.description else ""
    lasts = name in _LASTING or _NO_RIGHT in text
    kind = ConfigError if lasts else TransientError
    return kind(f"{what}: {name}{text}")


def _put(data: Any, capabilities: tuple[str, ...]) -> None:
    if len(capabilities) == 1:
        data.put_object(symbol(capabilities[0]))
    else:
        data.put_object(proton.Array(_UNDESCRIBED, proton.Data.SYMBOL, *map(symbol, capabilities)))


def _connected(broker: Broker) -> socket.socket:
    try:
        plain = socket.create_connection((broker.host, broker.port), timeout=broker.timeout)
    except OSError as error:
        raise TransientError(f"no connection to {broker}: {error}") from error
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        made = (
            tls_context(broker).wrap_socket(plain, server_hostname=broker.host)
            if broker.tls
            else plain
        )
    except ssl.SSLError as error:
        plain.close()
        raise _tls_error(error, broker) from error
    except OSError as error:
        plain.close()
        raise TransientError(f"no connection to {broker}: {error}") from error
    made.setblocking(False)
    return made


def tls_context(broker: Broker) -> ssl.SSLContext:
    """Return how to verify the broker, and what to show it."""
    try:
        context = ssl.create_default_context(cafile=broker.ca)
        if broker.certificate:
            context.load_cert_chain(broker.certificate, broker.certificate_key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (broker.ca, broker.certificate, broker.certificate_key)))
        raise ConfigError(f"the files for TLS cannot be used ({files}): {error}") from error
    return context


def _tls_error(error: ssl.SSLError, broker: Broker) -> PenstockError:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return TransientError(f"{broker} closed the connection")
    return ConfigError(
        f"TLS with {broker} failed: {error.reason or error}; check 'ca', the host name in 'url', and the "
        "certificates"
    )
