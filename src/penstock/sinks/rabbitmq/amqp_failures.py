"""What RabbitMQ's refusals mean: a wrong setting, or something that passes."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

from pika import exceptions

from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.sinks.rabbitmq.broker_options import Broker

_MOST = 500


def translated(error: BaseException, broker: Broker, what: str) -> PenstockError:
    """Return the error of Penstock for one of pika's."""
    if isinstance(error, PenstockError):
        return error
    for cause in _causes(error):
        if found := _meaning(cause, broker, what):
            return found
    return TransientError(f"{broker.at} is away ({what}): {_text(error)}")


def _meaning(cause: BaseException, broker: Broker, what: str) -> PenstockError | None:  # noqa: PLR0911 - a table
    # pika says so, too, where the connection was lost in this phase: the server's own code decides.
    if isinstance(cause, exceptions.ProbableAuthenticationError) and "(403)" in repr(cause):
        return ConfigError(
            f"{broker.at} refuses the user {broker.user!r} or the password; check 'url' and 'password'"
            + (" (guest may log in from the machine itself only)" if broker.user == "guest" else "")
        )
    if isinstance(cause, exceptions.ProbableAccessDeniedError) and "(530)" in repr(cause):
        return _no_vhost(broker, _text(cause))
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigError(
            f"{broker.at} has a certificate that is not trusted: {cause.verify_message}; check 'ca' and "
            "the host name in 'url'"
        )
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return ConfigError(
            f"{broker.at} does not speak TLS as asked: {cause.reason or cause}; check the port, "
            "'certificate' and 'key_file'"
        )
    if isinstance(cause, exceptions.IncompatibleProtocolError):
        # As from a load balancer that has no server at the moment.
        return TransientError(
            f"{broker.at} does not speak AMQP 0-9-1 there, or ended the connection at once; check the "
            "port, and whether it needs amqps://"
        )
    if isinstance(cause, exceptions.ChannelClosedByBroker):
        return _channel_closed(cause, broker, what)
    if isinstance(cause, exceptions.ConnectionClosedByBroker):
        return _connection_closed(cause, broker, what)
    return None


def _channel_closed(cause: Any, broker: Broker, what: str) -> PenstockError:
    code, text = cause.reply_code, str(cause.reply_text)[:_MOST]
    if code == 403 and "exclusive" in text:
        return TransientError(
            f"{broker.at}: another consumer has the queue for itself: {text}; end that consumer, or let "
            "it not be exclusive"
        )
    if code == 405:
        return ConfigError(
            f"{broker.at}: the queue belongs to the connection that declared it (exclusive), and no "
            f"other one may use it: {text}"
        )
    if code == 403:
        return ConfigError(f"{broker.at} denies {broker.user!r} a right ({what}): {text}")
    if code == 404:
        return ConfigError(f"{broker.at}: {text}; declare it first, or check its name and 'vhost'")
    if code == 540:
        return ConfigError(f"{broker.at} cannot do this with this kind of queue: {text}")
    return TransientError(f"{broker.at} closed the channel ({what}): {code} {text}")


def _connection_closed(cause: Any, broker: Broker, what: str) -> PenstockError:
    code, text = cause.reply_code, str(cause.reply_text)[:_MOST]
    if code == 530 and "vhost" in text:
        return _no_vhost(broker, text)
    return TransientError(f"{broker.at} closed the connection ({what}): {code} {text}")


def _no_vhost(broker: Broker, text: str) -> ConfigError:
    return ConfigError(
        f"{broker.at} has no virtual host {broker.vhost!r} for the user {broker.user!r}: {text[:_MOST]}; "
        "check 'vhost', or the path of 'url' ('/' is written as %2F)"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return the error and those inside it, from the innermost: pika wraps those of a connection."""
    inner: list[BaseException] = [*getattr(error, "exceptions", ())]
    inner += [each for each in (getattr(error, "exception", None), *error.args) if _is_error(each)]
    for each in reversed(inner):
        yield from _causes(each)
    yield error


def _is_error(value: object) -> bool:
    return isinstance(value, BaseException)


def _text(error: BaseException) -> str:
    innermost = next(_causes(error))
    return (str(innermost) or repr(innermost) or type(innermost).__name__)[:_MOST]
