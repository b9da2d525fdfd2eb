"""`make faults`: every exactly-once sink under many kills, and a table of what was lost and doubled.

ARGS="--kills 20 --sinks files,kafka" chooses; the table is also kept as Markdown in out/faults.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.faults.suite.rounds import Outcome, run
from tests.faults.suite.targets import EXACT, Setting
from tests.services.postgres import PASSWORD, Postgres

from penstock import Broker, Delivery

OUT = Path("out/faults.md")
HEAD = ("sink", "delivery", "rounds", "kills", "records", "lost", "duplicated", "dead letters",
        "lost", "duplicated", "behind")  # fmt: skip


def cells(outcome: Outcome) -> list[str]:
    numbers = (
        outcome.rounds, outcome.kills, outcome.records, outcome.lost, outcome.duplicated, outcome.letters,
        outcome.letters_lost, outcome.letters_duplicated, outcome.behind,
    )  # fmt: skip
    return [outcome.sink, outcome.delivery, *(f"{number:,}" for number in numbers)]


def report(outcomes: list[Outcome]) -> None:
    shown = Table(*HEAD)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for outcome in outcomes:
        shown.add_row(*cells(outcome))
        lines.append("| " + " | ".join(cells(outcome)) + " |")
    Console().print(shown)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make faults ARGS=...")
    parser.add_argument("--kills", type=int, default=24, help="kills of each sink")
    parser.add_argument("--sinks", default=",".join(EXACT).replace(", ", ": "))
    given = parser.parse_args()
    outcomes = []
    with ExitStack() as stack:
        broker = stack.enter_context(Broker())
        postgres = stack.enter_context(Postgres(fsync="on"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-faults-")))
        for number, target in enumerate(given.sinks.replace(": ", "; ").split(",")):
            name = f"faults-{os.getpid()}-{number}"
            (folder / name).mkdir()
            setting = Setting(broker.connection, name, folder / name, postgres.url, PASSWORD)
            chosen = target.strip().replace(";", ",")
            outcomes.append(run(chosen, setting, count=given.kills, told=print))
            report(outcomes)
        from penstock.engine import stop_session

        stop_session()
    if not all(outcome.exact for outcome in outcomes if outcome.delivery == Delivery.EXACTLY_ONCE):
        sys.exit("some records were lost or duplicated")


if __name__ == "__main__":
    main()
