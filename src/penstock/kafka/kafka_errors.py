"""librdkafka's error codes become Penstock's errors here, in words that say what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException, libversion

from penstock.config.secrets import mask
from penstock.errors import (
    AbortableError,
    BrokerUnavailableError,
    ConfigError,
    NotFoundError,
    PenstockError,
    SetupError,
    TerminalError,
    TransientError,
)
from penstock.kafka.error_table import GROUPS, Group, group

MOVING = group("moving").codes
_AWAY = group("away").codes
_REFUSED = group("refused").codes
# Topics that the error for a missing one lists.
_SHOWN = 10
_ALERT = "ssl/tls alert"
_NO_PROVIDER = "No provider for SASL mechanism GSSAPI"
_GROUP_OF = {code: each for each in GROUPS for code in each.codes}
# What a newer librdkafka may say and this table does not know yet.
_UNHEARD_OF = Group("unheard of", TerminalError, "look in the brokers' logs", "")


def reason(error: KafkaError) -> str:
    """Return the error in words: librdkafka's own text, with the code's name where it adds something."""
    text = error.str()
    if "Request(processor=" in text:
        # For a missing right the broker sends the whole request back, as Java prints it.
        text = "the request is not authorized"
    return f"{mask(text)} ({error.name()})"


def describe_event(error: KafkaError) -> tuple[str, str, str]:
    """Return what an error callback is called with: level, name and message.

    >>> describe_event(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    ('ERROR', '_ALL_BROKERS_DOWN', '1/1 brokers are down')
    >>> describe_event(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    ('WARNING', '_TRANSPORT', 'Connection refused')
    """
    grave = error.fatal() or is_refusal(error) or error.code() == KafkaError._ALL_BROKERS_DOWN
    return "ERROR" if grave else "WARNING", error.name(), mask(error.str())


def translate(
    error: KafkaError, doing: str, brokers: str, seen: Sequence[KafkaError] = ()
) -> PenstockError:
    """Return Penstock's error for one of librdkafka's.

    A refused password or certificate reaches the caller as a mere time-out; what the connection
    itself reported meanwhile (`seen`) distinguishes the two.
    """
    if error.fatal():
        return _fatal(error, doing)
    if error.txn_requires_abort():
        return AbortableError(f"{doing}: {reason(error)}; {group('abort').hint}")
    if is_refusal(error):
        return _refused(error, doing, brokers)
    if error.code() in _AWAY:
        return _away(error, doing, brokers, seen)
    if _NO_PROVIDER in error.str():
        return _no_kerberos(doing)
    return _by_table(error, doing)


def _fatal(error: KafkaError, doing: str) -> PenstockError:
    matching = _GROUP_OF.get(error.code(), _UNHEARD_OF)
    end = "this client can do no more: close it and make a new one"
    if not issubclass(matching.kind, TerminalError):
        return TerminalError(f"{doing}: {reason(error)}; {end}")
    return matching.kind(f"{doing}: {reason(error)}; {matching.hint}; {end}")


def _no_kerberos(doing: str) -> SetupError:
    return SetupError(
        f"{doing}: this librdkafka ({libversion()[0]}, as it comes with confluent-kafka) has no Kerberos "
        "(sasl.mechanisms GSSAPI); build librdkafka of that version with libsasl2-dev, install "
        "libsasl2-modules-gssapi-mit, then: pip install --force-reinstall --no-binary confluent-kafka "
        "confluent-kafka. Pipelines need none of this: Spark's Java client has Kerberos"
    )


def _by_table(error: KafkaError, doing: str) -> PenstockError:
    matching = _GROUP_OF.get(error.code(), _UNHEARD_OF)
    # librdkafka knows more about this one call than the table does about its code.
    if error.retriable() and not issubclass(matching.kind, TransientError):
        matching = group("busy")
    if matching.name == "forbidden":
        doing = f"{doing}: the broker does not allow it to this user"
    return matching.kind(f"{doing}: {reason(error)}; {matching.hint}")


def code_of(error: BaseException) -> int | None:
    """Return librdkafka's code of one of our errors, for the callers that add advice to it."""
    cause = error.__cause__
    return cause.args[0].code() if isinstance(cause, KafkaException) else None


def topic_missing(topic: str, existing: Sequence[str]) -> NotFoundError:
    """Return the error for a topic that does not exist, with the topics that were probably meant."""
    close = get_close_matches(topic, existing, n=3, cutoff=0.5)
    if close:
        hint = f"the nearest: {', '.join(close)}"
    elif existing:
        more = f" and {len(existing) - _SHOWN} more" if len(existing) > _SHOWN else ""
        hint = f"the cluster has: {', '.join(sorted(existing)[:_SHOWN])}{more}"
    else:
        hint = "the cluster has none yet"
    return NotFoundError(
        f"there is no topic {topic!r}; {hint}; make it with: penstock topics create {topic}"
    )


def refusal(doing: str, brokers: str, seen: Sequence[KafkaError]) -> ConfigError | None:
    """Return the error for a connection that was refused, where what it reported says so.

    librdkafka tries forever with a wrong password; a caller that waits asks this and can stop.
    """
    refused = [error for error in list(seen) if is_refusal(error)]
    return _refused(refused[-1], doing, brokers) if refused else None


def is_refusal(error: KafkaError) -> bool:
    """Return whether the broker answered and did not let this user or certificate in."""
    # A broker judges a certificate when the connection is open already: it comes as a lost connection.
    return error.code() in _REFUSED or (
        error.code() == KafkaError._TRANSPORT and _ALERT in error.str()
    )


def _away(error: KafkaError, doing: str, brokers: str, seen: Sequence[KafkaError]) -> PenstockError:
    if refused := refusal(doing, brokers, seen):
        return refused
    detail = reason(error)
    # "0/1 brokers are down" says less than "Connection refused", which came just before it.
    telling = [e for e in seen if e.code() in (KafkaError._TRANSPORT, KafkaError._RESOLVE)]
    if telling:
        without_place = re.sub(r"^\S+: ", "", mask(telling[-1].str()))
        detail = re.sub(r" \(after .*\)$", "", without_place)
    return BrokerUnavailableError(
        f"{doing}: no broker answers at {brokers}: {detail}; {group('away').hint}"
    )


def _refused(error: KafkaError, doing: str, brokers: str) -> ConfigError:
    what, check = _what_to_check(error)
    return ConfigError(
        f"{doing}: {what} at {brokers}: {reason(error)}; check {check} of the connection"
    )


def _what_to_check(error: KafkaError) -> tuple[str, str]:
    text = error.str().lower()
    if _ALERT in text:
        settings = "ssl.certificate.location (missing, expired, or of a CA unknown there)"
        return "the broker did not take the certificate", settings
    if error.code() == KafkaError._SSL:
        return "no secure connection", "security.protocol, ssl.ca.location and the certificates"
    if "oauthbearer token" in text or "oauth token" in text:
        settings = (
            "sasl.oauthbearer.token.endpoint.url, .client.id and .client.secret, or the oauth_cb"
        )
        return "there is no token to log in with", settings
    if "invalid_token" in text:
        return "the token was refused", "its signature, expiry, issuer, audience and the provider"
    return "the user was refused", "sasl.mechanisms, sasl.username and sasl.password"
