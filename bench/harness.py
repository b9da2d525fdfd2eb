"""Runs a case and its raw counterpart in turns, keeps the best of each, and prints ratios.

Absolute times mean little on a shared machine; both sides of a ratio see the same machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

OUT = Path("out/bench")
Run = Callable[[], float | None]
"""Does the work; may return the seconds that count, when not all of it does."""


@dataclass
class Result:
    """One comparison: seconds of the best round of each side."""

    case: str
    rows: int
    ours: float
    raw: float
    wanted: float | None = None

    @property
    def ratio(self) -> float:
        """How many times as fast as the raw side; above 1 is faster."""
        return self.raw / self.ours


def compare(
    case: str, ours: Run, raw: Run, *, rows: int, rounds: int, wanted: float | None = None
) -> Result:
    """Run both sides in turns, one warm-up each first."""
    best = {"ours": float("inf"), "raw": float("inf")}
    for number in range(rounds + 1):
        for side, run in (("ours", ours), ("raw", raw)):
            began = time.monotonic()
            took = run() or time.monotonic() - began
            if number:
                best[side] = min(best[side], took)
            label = f"round {number}" if number else "warm-up"
            print(f"  {case}, {side}, {label}: {took:.2f} s", flush=True)
    return Result(case, rows, best["ours"], best["raw"], wanted)


def report(results: list[Result]) -> None:
    """Print the table and keep the figures."""
    table = Table("case", "ours", "raw", "ours rows/s", "raw rows/s", "ratio", "wanted")
    for r in results:
        table.add_row(
            r.case,
            f"{r.ours:.2f} s",
            f"{r.raw:.2f} s",
            f"{r.rows / r.ours:,.0f}",
            f"{r.rows / r.raw:,.0f}",
            f"{r.ratio:.2f}x",
            f"{r.wanted:.2f}x" if r.wanted else "",
        )
    Console().print(table)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps([asdict(r) for r in results], indent=2))
