"""Runs a case and its counterparts in turns, keeps the best of each, and prints ratios.

Absolute times mean little on a shared machine; both sides of a ratio see the same machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

OUT = Path("out/bench")
Run = Callable[[], float | None]
"""Does the work; may return the seconds that count, when not all of it does."""


class GaveUpError(Exception):
    """A side that failed or passed its deadline; the others go on without it."""


@dataclass(frozen=True)
class Side:
    """One of several that do the same work; a slow one may do it with fewer rows."""

    name: str
    rows: int
    run: Run
    warm_up: bool = True


@dataclass
class Result:
    """One comparison: seconds of the best round of each side."""

    case: str
    rows: int
    ours: float
    raw: float
    wanted: float | None = None
    raw_rows: int = 0

    def __post_init__(self) -> None:
        self.raw_rows = self.raw_rows or self.rows

    @property
    def ratio(self) -> float:
        """How many times as many rows in a second as the other side; above 1 is faster."""
        return (self.rows / self.ours) / (self.raw_rows / self.raw)

    @property
    def met(self) -> bool:
        """Whether the ratio is what is wanted; a side that gave up says nothing."""
        return self.wanted is None or math.isnan(self.ratio) or self.ratio >= self.wanted


def compare(
    case: str, ours: Run, raw: Run, *, rows: int, rounds: int, wanted: float | None = None
) -> Result:
    """Run both sides in turns, one warm-up each first."""
    best = race(case, [Side("ours", rows, ours), Side("raw", rows, raw)], rounds)
    return Result(case, rows, best["ours"], best["raw"], wanted)


def race(case: str, sides: Sequence[Side], rounds: int) -> dict[str, float]:
    """Run all sides in turns, there and back; the best seconds of each, NaN where one gave up."""
    best = {side.name: math.inf for side in sides}
    for number in range(rounds + 1):
        for side in sides if number % 2 == 0 else reversed(sides):
            if math.isnan(best[side.name]) or not (number or side.warm_up):
                continue
            took = _turn(case, side, f"round {number}" if number else "warm-up")
            if number or math.isnan(took):
                best[side.name] = min(took, best[side.name])
    return best


def _turn(case: str, side: Side, label: str) -> float:
    began = time.monotonic()
    try:
        took = side.run() or time.monotonic() - began
    except GaveUpError as reason:
        print(f"  {case}, {side.name}, {label}: gave up: {reason}", flush=True)
        return math.nan
    speed = f"{side.rows / took:,.0f} rows/s"
    print(f"  {case}, {side.name}, {label}: {took:.2f} s, {speed}", flush=True)
    return took


def report(results: list[Result]) -> None:
    """Print the table and keep the figures."""
    table = Table("case", "ours", "other", "ours rows/s", "other rows/s", "ratio", "wanted")
    for r in results:
        table.add_row(
            r.case,
            f"{r.ours:.2f} s",
            "gave up" if math.isnan(r.raw) else f"{r.raw:.2f} s",
            f"{r.rows / r.ours:,.0f}",
            f"{r.raw_rows / r.raw:,.0f}",
            f"{r.ratio:.2f}x",
            f"{r.wanted:.2f}x{'' if r.met else ' missed'}" if r.wanted else "",
        )
    console = Console()
    # In a file or a pipe there is room enough for a case on one line.
    (console if console.is_terminal else Console(width=140)).print(table)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps([asdict(r) for r in results], indent=2))
