"""The plugin's arguments: one check for each name, and their conversion to those of Penstock's API.

A wrong argument is a `ConfigError` that names it, what was given and what is allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from math import isfinite
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from penstock.errors import ConfigError
from penstock.formats.format_values import kind
from penstock.kafka import Consumer, Event, Producer, Queue
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import aligned, whole
from penstock.kafka.producing.arguments import key_of

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[str, Any], object]

_FORMATS = {"JSON": "json", "DOLPHINDB": "dolphindb", "PLAIN": "plain"}
_LONGEST = 2**31 - 1
_LARGEST = 2**63 - 1


def checked(**special: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function by their names; `special` has those that mean something else."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        checks = _checks_of(function, special)
        in_order = list(checks.items())

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for (name, check), given in zip(in_order, args, strict=False):
                check(name, given)
            for name, given in kwargs.items():
                if name in checks:
                    checks[name](name, given)
            return function(*args, **kwargs)

        return call

    return wrap


def _checks_of(function: Callable[..., Any], special: Mapping[str, Check]) -> dict[str, Check]:
    chosen = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            break
        check = special.get(name) or CHECKS[name]
        chosen[name] = _or_nothing(check) if parameter.default is None else check
    return chosen


def _or_nothing(check: Check) -> Check:
    def check_given(name: str, given: Any) -> None:
        if given is not None:
            check(name, given)

    return check_given


def refusal(name: str, given: Any, allowed: str) -> ConfigError:
    """Return the error of an argument: its name, what was given, what is allowed."""
    shown = repr(given) if isinstance(given, str | int | float | None) else kind(given)
    return ConfigError(f"{name} {shown:.80} is not allowed; allowed: {allowed}")


def _handle(wanted: type, allowed: str) -> Check:
    def check(name: str, given: Any) -> None:
        if not isinstance(given, wanted):
            raise refusal(name, given, allowed)

    return check


def _number(least: int, most: int, allowed: str) -> Check:
    def check(name: str, given: Any) -> None:
        number = whole(given)
        if number is None or not least <= number <= most:
            raise refusal(name, given, allowed)

    return check


def _each(check: Check, allowed: str) -> Check:
    """Check one value, or each of a vector."""

    def check_all(name: str, given: Any) -> None:
        items = items_of(given)
        if not items:
            raise refusal(name, given, allowed)
        for item in items:
            check(name, item)

    return check_all


def check_text(name: str, given: Any) -> None:
    """Refuse what is not a name."""
    if not isinstance(given, str) or not given or "\0" in given:
        raise refusal(name, given, "a name, as text")


def _check_texts(name: str, given: Any) -> None:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refusal(name, given, "a list of names")
    _each(check_text, "a list of names")(name, given)


def _check_truth(name: str, given: Any) -> None:
    if type(given).__name__ not in ("bool", "bool_"):
        raise refusal(name, given, "True or False")


def _check_seconds(name: str, given: Any) -> None:
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not isfinite(given) or given < 0:
        raise refusal(name, given, "seconds, from 0 on")


def _check_config(name: str, given: Any) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise refusal(
            name, given, "a mapping of keys to values, e.g. {'bootstrap.servers': 'host'}"
        )


def _check_callback(name: str, given: Any) -> None:
    allowed = "a function of level, name and message"
    if not callable(given):
        raise refusal(name, given, allowed)
    try:
        inspect.signature(given).bind("", "", "")
    except ValueError:
        return  # a C function has no signature
    except TypeError as error:
        raise ConfigError(
            f"{name} {kind(given)} is not allowed ({error}); allowed: {allowed}"
        ) from None


def _check_key(name: str, given: Any) -> None:
    try:
        key_of(given)
    except Exception as error:
        raise refusal(name, given, "text, bytes, a whole number or None") from error


def anything(_name: str, _given: Any) -> None:
    """Accept every value: the function itself checks it."""


_topics = _each(check_text, "a topic, or a list of topics")
_partitions = _each(
    _number(0, _LONGEST, "a partition's number from 0 on, or a list of them"),
    "a partition's number from 0 on, or a list of them",
)
_offsets = _each(
    _number(-_LARGEST, _LARGEST, "an offset, or a list of offsets"),
    "an offset, or a list of offsets",
)
_count = _number(1, _LONGEST, "a whole number from 1 on")

CHECKS: dict[str, Check] = {
    "producer": _handle(Producer, "a producer, as producer(config) returns it"),
    "consumer": _handle(Consumer, "a consumer, as consumer(config) returns it"),
    "queue": _handle(Queue, "a queue, as getConsumerQueue(consumer) returns it"),
    "forward_queue": _handle(Queue, "a queue, as getMainQueue(consumer) returns it"),
    "event": _handle(Event, "an event, as queueEvent(queue) returns it"),
    "config": _check_config,
    "errCallback": _check_callback,
    "timeout": _number(0, _LONGEST, "milliseconds, from 0 on"),
    "batchSize": _count,
    "batch_size": _count,
    "queueDepth": _count,
    "size": anything,
    "marshalType": lambda _name, given: format_of(given, "auto"),
    "topic": _topics,
    "topics": _topics,
    "partition": _partitions,
    "partitions": _partitions,
    "offset": _offsets,
    "offsets": _offsets,
    "key": _check_key,
    "value": anything,
    "actionName": check_text,
    "throttle": _check_seconds,
    "autoCommit": _check_truth,
    "msgAsTable": _check_truth,
    "names": _check_texts,
    "types": _check_texts,
    "keys": _each(check_text, "a column, or a list of columns"),
}


def format_of(marshalType: Any, default: str) -> str:
    """Return the format of a marshalType, or of the boolean `json` of version 1.30.

    >>> [format_of(given, "auto") for given in ("PLAIN", True, False, None)]
    ['plain', 'json', 'dolphindb', 'auto']
    """
    if marshalType is None:
        return default
    if type(marshalType).__name__ in ("bool", "bool_"):
        return "json" if marshalType else "dolphindb"
    if isinstance(marshalType, str) and marshalType.upper() in _FORMATS:
        return _FORMATS[marshalType.upper()]
    raise ConfigError(
        f"marshalType {marshalType!r} is not allowed; allowed: {', '.join(_FORMATS)}, "
        "or True (JSON) and False (DOLPHINDB)"
    )


def items_of(given: Any) -> list[Any]:
    """Return one value, or the values of a vector of any library.

    >>> items_of("test"), items_of(["a", "b"])
    (['test'], ['a', 'b'])
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    as_list = getattr(given, "to_pylist", None) or getattr(given, "tolist", None)
    items = as_list() if as_list else list(given)
    return items if isinstance(items, list) else [items]


def seconds(timeout: Any) -> float:
    """Return a time to wait, given in milliseconds and checked, in seconds."""
    return int(timeout) / 1000


def wait_of(timeout: Any) -> float | None:
    """Return a time to wait in seconds, or None for the handle's own."""
    return None if timeout is None else seconds(timeout)


def offsets_at(topic: Any, partition: Any, offset: Any) -> dict[Partition, int]:
    """Return offsets by partition, of three values or three vectors of one length; none may be left out.

    >>> offsets_at("test", 0, 7)
    {('test', 0): 7}
    """
    if topic is None or partition is None or offset is None:
        raise ConfigError(
            "topic, partition and offset belong together: give all three, each one value or a vector "
            "of the same length"
        )
    return aligned(items_of(topic), items_of(partition), items_of(offset))


def partitions_at(topic: Any, partition: Any) -> list[Partition]:
    """Return partitions, of two values or two vectors of one length.

    >>> partitions_at(["a", "b"], [0, 1])
    [('a', 0), ('b', 1)]
    """
    return list(aligned(items_of(topic), items_of(partition), None))
