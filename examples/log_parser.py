"""The parser of logs-to-parquet.yaml: one line of a log, one row."""

import re
from datetime import datetime
from typing import Any

LINE = re.compile(r"(?P<at>\S+) (?P<level>[A-Z]+) (?P<service>\S+): (?P<message>.*)")


def parse(value: str) -> dict[str, Any] | None:
    """Return the row of a line; None leaves a blank line out, an error sends it to the dead letters."""
    if not value.strip():
        return None
    match = LINE.fullmatch(value)
    if not match:
        raise ValueError("a line is written as: TIME LEVEL SERVICE: MESSAGE")
    return {**match.groupdict(), "at": datetime.fromisoformat(match["at"].replace("Z", "+00:00"))}
