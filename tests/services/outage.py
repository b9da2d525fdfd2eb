"""How long systems are away in tests: as short as can be, or for PENSTOCK_AWAY seconds.

`PENSTOCK_AWAY=120 python -m pytest -k "away or back"` lets every system be away for two minutes.
"""

from __future__ import annotations

import os
import time

# As short as can be: a test waits until the outage is noticed, and then for this.
SECONDS = float(os.environ.get("PENSTOCK_AWAY", "0"))


def stay_away() -> None:
    """Wait before a system comes back."""
    time.sleep(SECONDS)
