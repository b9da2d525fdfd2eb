"""How many kills a test of the suite makes: few, so that it is quick, or as many as PENSTOCK_KILLS says.

`PENSTOCK_KILLS=24 python -m pytest tests -k kill` is the whole of it, for the systems around Kafka. With
PENSTOCK_KILL_MINUTES tests of workers begin no other event after that time; they print their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence


def kills(few: int) -> int:
    """Return how many kills to make."""
    return int(os.environ.get("PENSTOCK_KILLS", few))


def within_minutes(events: Sequence[str]) -> Iterator[str]:
    """Yield events, none after PENSTOCK_KILL_MINUTES."""
    end = time.monotonic() + 60 * float(os.environ.get("PENSTOCK_KILL_MINUTES", "inf"))
    for event in events:
        if time.monotonic() > end:
            return
        yield event
