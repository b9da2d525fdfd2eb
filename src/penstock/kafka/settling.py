"""Leaders and coordinators move: a question that met one on the move is put again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException

from penstock.kafka.errors import MOVING

_PAUSE = 0.05
Answer = TypeVar("Answer")


def settled(ask: Callable[[], Answer], seconds: float) -> Answer:
    """Ask, and ask again while what was asked moves and there is time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as problem:
            if problem.args[0].code() not in MOVING or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)
