"""How long systems are away in tests: as short as can be, or for PENSTOCK_AWAY seconds.

`PENSTOCK_AWAY=120 python -m pytest -k "away or back"` lets every system be away for two minutes.
"""

from __future__ import annotations

import os
import time


def stay_away() -> None:
    """Wait before a system comes back."""
    time.sleep(float(os.environ.get("PENSTOCK_AWAY", "0")))
