"""Producers and consumers as the plugin makes them, and their end: the plugin has no call to close one.

A script that sends and ends must not lose what it sent a moment ago, nor stay in its group as a ghost.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from weakref import WeakSet

from penstock.compat.dolphindb.settings import SIZES
from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.kafka import Consumer, Producer

ErrCallback = Callable[[str, str, str], None]
"""Told of errors in the background: level ("ERROR" or "WARNING"), name, message."""

# The plugin's own; Penstock's consumers commit nothing by themselves.
_DEFAULTS = {"enable.auto.commit": True, "auto.commit.interval.ms": 60_000}

_producers: WeakSet[Producer] = WeakSet()
_consumers: WeakSet[Consumer] = WeakSet()


def producer(config: Mapping[str, Any], errCallback: ErrCallback | None = None) -> Producer:
    """Make a producer. What it holds is delivered when the process ends; `close()` does it sooner.

    >>> producer({"bootstrap.servers": "localhost"}).connection.brokers
    'localhost:9092'
    """
    made = Producer(Connection.from_config(config), on_error=_callable(errCallback))
    made.sizes = SIZES
    _producers.add(made)
    return made


def consumer(config: Mapping[str, Any], errCallback: ErrCallback | None = None) -> Consumer:
    """Make a consumer of the group `group.id`, which must be given.

    As in the plugin, offsets are committed every 60 seconds unless `enable.auto.commit` is false. It
    leaves its group when the process ends; `close()` does it sooner.
    """
    connection = Connection.from_config(config)
    if connection.group_id is None:
        raise ConfigError("group.id is missing: a consumer needs one, e.g. {'group.id': 'test'}")
    given = connection.to_config()
    defaults: dict[str, Any] = {key: value for key, value in _DEFAULTS.items() if key not in given}
    made = Consumer(connection, on_error=_callable(errCallback), **defaults)
    _consumers.add(made)
    return made


def _callable(given: ErrCallback | None) -> ErrCallback | None:
    if given is None or callable(given):
        return given
    raise ConfigError(
        f"errCallback {given!r} is not allowed; allowed: a function of level, name and message"
    )


@atexit.register
def _end() -> None:
    # What one of them raises must not keep the others from their end.
    with ExitStack() as stack:
        for sending in _producers:
            stack.callback(_deliver, sending)
        for reading in _consumers:
            stack.callback(reading.close)


def _deliver(sending: Producer) -> None:
    if len(sending):
        sending.flush(sending.timeout_ms / 1000)
