"""librdkafka's error codes become Penstock's errors here, in words that say what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import (
    BrokerUnavailableError,
    ConfigError,
    PenstockError,
    TerminalError,
    TransientError,
)

AWAY = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._DESTROY,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)
REFUSED = frozenset(
    {
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
WRONG_REQUEST = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_ALREADY_EXISTS,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.POLICY_VIOLATION,
        KafkaError._INVALID_ARG,
    }
)
# Leaders and coordinators move, and a new topic's leader needs a moment to know that it is one.
MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_CONTROLLER,
    }
)
MISSING_TOPIC = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)


def reason(error: KafkaError) -> str:
    """The error in words: librdkafka's own text, with the code's name where it adds something."""
    return f"{error.str()} ({error.name()})"


def translate(
    error: KafkaError, doing: str, brokers: str, seen: Sequence[KafkaError] = ()
) -> PenstockError:
    """Penstock's error for one of librdkafka's.

    A refused password or certificate reaches the caller as a mere time-out; what the connection
    itself reported meanwhile (`seen`) tells the two apart.
    """
    code = error.code()
    if code in AWAY:
        return _away(error, doing, brokers, seen)
    if code in REFUSED:
        return _refused(error, doing, brokers)
    if code in FORBIDDEN:
        return TerminalError(
            f"{doing}: the broker does not allow it to this user: {reason(error)}; "
            "ask for an ACL, or use a connection with another user"
        )
    if code in WRONG_REQUEST or code in MISSING_TOPIC:
        return ConfigError(f"{doing}: {reason(error)}")
    if code in MOVING or error.retriable():
        return TransientError(f"{doing}: {reason(error)}; the same call may work in a moment")
    return TerminalError(f"{doing}: {reason(error)}")


@contextmanager
def translated(doing: str, brokers: str, seen: Sequence[KafkaError] = ()) -> Iterator[None]:
    """Run a block so that whatever librdkafka raises in it comes out as a PenstockError."""
    try:
        yield
    except KafkaException as problem:
        raise translate(problem.args[0], doing, brokers, seen) from problem


def topic_missing(topic: str, existing: Sequence[str]) -> ConfigError:
    """The error for a topic that is not there, with the topics that were probably meant."""
    close = get_close_matches(topic, existing, n=3, cutoff=0.5)
    if close:
        hint = f"the nearest: {', '.join(close)}"
    elif existing:
        hint = f"the cluster has: {_some(sorted(existing))}"
    else:
        hint = "the cluster has none yet"
    return ConfigError(
        f"there is no topic {topic!r}; {hint}; make it with: penstock topics create {topic}"
    )


def _some(names: Sequence[str], limit: int = 10) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _away(error: KafkaError, doing: str, brokers: str, seen: Sequence[KafkaError]) -> PenstockError:
    for earlier in seen:
        if earlier.code() in REFUSED:
            return _refused(earlier, doing, brokers)
    detail = _connection_detail(error, seen)
    return BrokerUnavailableError(
        f"{doing}: no broker answers at {brokers}: {detail}; "
        "check the address and that the broker runs ('penstock broker start' gives a local one)"
    )


def _connection_detail(error: KafkaError, seen: Sequence[KafkaError]) -> str:
    # "0/1 brokers are down" says less than "Connection refused", which came just before it.
    telling = [e for e in seen if e.code() in (KafkaError._TRANSPORT, KafkaError._RESOLVE)]
    if not telling:
        return reason(error)
    without_place = re.sub(r"^\S+: ", "", telling[-1].str())
    return re.sub(r" \(after .*\)$", "", without_place)


def _refused(error: KafkaError, doing: str, brokers: str) -> ConfigError:
    if error.code() == KafkaError._SSL:
        what = "no secure connection"
        check = "security.protocol, ssl.ca.location and the certificates"
    else:
        what = "the user was refused"
        check = "sasl.mechanisms, sasl.username and sasl.password"
    return ConfigError(
        f"{doing}: {what} at {brokers}: {reason(error)}; check {check} of the connection"
    )
