"""Names of test cases after their values, the same in every run."""

import re
from typing import Any


def named(value: Any) -> str:
    """The value in short: the same in every process, so without places in memory and orders of sets."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]
