"""`make faults`: every exactly-once sink under many kills, and a table of what was lost and doubled.

ARGS='--kills 20 --sinks files "files, json" kafka' chooses; the table is also kept as Markdown in
out/faults.md. Then the broker and PostgreSQL are killed, and PostgreSQL is stopped for two minutes.
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
from tests.faults.suite.troubles import broker_killed, database_away, database_killed
from tests.services.postgres import PASSWORD, Postgres

from penstock import Broker
from penstock.engine import stop_session

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
    parser.add_argument("--sinks", nargs="*", choices=EXACT, default=EXACT, metavar="SINK")
    parser.add_argument(
        "--troubles", type=int, default=4, help="kills of the broker and of PostgreSQL"
    )
    parser.add_argument(
        "--away", type=float, default=120, help="seconds that PostgreSQL is stopped"
    )
    given = parser.parse_args()
    outcomes: list[Outcome] = []

    def told(outcome: Outcome) -> None:
        outcomes.append(outcome)
        report(outcomes)

    with ExitStack() as stack:
        broker = stack.enter_context(Broker())
        postgres = stack.enter_context(Postgres(fsync="on"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-faults-")))

        def place() -> tuple[str, Path]:
            name = f"faults-{os.getpid()}-{len(outcomes)}"
            (folder / name).mkdir()
            return name, folder / name

        for target in given.sinks:
            setting = Setting(broker.connection, *place(), postgres.url, PASSWORD)
            told(run(target, setting, count=given.kills, told=print))
        if given.troubles:
            told(broker_killed(*place(), count=given.troubles, told=print))
            told(database_killed(broker.connection, *place(), count=given.troubles, told=print))
        if given.away:
            peaks = []
            for stopped in (False, True):
                how = {"seconds": given.away, "stopped": stopped}
                outcome, peak = database_away(broker.connection, *place(), **how)
                told(outcome)
                peaks.append(f"{peak / 2**20:,.0f} MB")
            print(f"peak of memory: {peaks[0]} undisturbed, {peaks[1]} with PostgreSQL away")
        stop_session()
    if not all(outcome.exact for outcome in outcomes):
        sys.exit("some records were lost or duplicated")


if __name__ == "__main__":
    main()
