"""How many kills a test of the suite makes: few, so that it is quick, or as many as PENSTOCK_KILLS says.

`PENSTOCK_KILLS=24 python -m pytest tests -k kill` is the whole of it, for the systems around Kafka.
"""

from __future__ import annotations

import os


def kills(few: int) -> int:
    """Return how many kills to make."""
    return int(os.environ.get("PENSTOCK_KILLS", few))
