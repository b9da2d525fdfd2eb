"""Names of test cases after their values, the same in every run."""

import re
from typing import Any


def named(value: Any) -> str:
    """The value in short, without the place in memory that some of them tell."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]
