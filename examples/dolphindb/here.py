"""The setup of the scripts: a broker, an existing topic, a group of their own."""

import time
from collections.abc import Callable

from penstock import Admin, find_connection

CONNECTION = find_connection()
BROKERS = CONNECTION.brokers
# A machine that is busy needs longer than the second that a poll waits by itself.
PATIENCE = 30_000
# A job that begins may have to start Spark first.
BEGINNING = 150_000


def new_topic(name: str, partitions: int = 1) -> str:
    """A topic that only this run has, so that its offsets begin at 0."""
    topic = f"{name}-{unique()}"
    with Admin(CONNECTION) as admin:
        admin.create_topic(topic, partitions)
    return topic


def unique() -> str:
    """What the documentation writes as string(now())."""
    return str(time.time_ns())


def until(condition: Callable[[], bool], milliseconds: int) -> None:
    """Wait for what happens in the background."""
    deadline = time.monotonic() + milliseconds / 1000
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {milliseconds} ms")
        time.sleep(0.05)
