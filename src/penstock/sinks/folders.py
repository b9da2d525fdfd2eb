"""What all sinks share that make a folder for each value of a column."""

from __future__ import annotations

import re


def is_name_too_long(told: str) -> bool:
    """Whether a folder could not be made for its name: Java's local files do not say why.

    >>> is_name_too_long(f"Mkdirs failed to create file:/t/name={'a word ' * 50} (exists=false)")
    True
    >>> is_name_too_long("Mkdirs failed to create file:/t/name=a word")
    False
    """
    unmade = re.findall(r"Mkdirs failed to create (.*?)(?: \(exists=|$)", told, re.MULTILINE)
    too_long = any(len(part.encode()) > 255 for place in unmade for part in place.split("/"))
    return too_long or "File name too long" in told or "PathComponentTooLong" in told
