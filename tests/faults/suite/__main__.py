"""`make faults`: every exactly-once sink under kills and other events; a table of losses and duplicates.

First all sinks at once live through random events: kills, suspended processes that wake up, two processes
with one name, wrong clocks, lost state folders, groups deleted and reset, replays, changed definitions.
Then each sink is killed by itself, the broker and PostgreSQL are killed, and PostgreSQL is stopped for
two minutes. ARGS='--events 36 --seed 7 --kills 20 --sinks files "files, json" kafka' chooses, 0 leaves a
part out; the tables are also stored as Markdown in out/faults.md.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.faults.suite import verdict as events
from tests.faults.suite.events import chosen_events
from tests.faults.suite.events import run as run_events
from tests.faults.suite.rounds import Outcome, run
from tests.faults.suite.targets import EXACT, Setting
from tests.faults.suite.troubles import broker_killed, database_away, database_killed
from tests.faults.suite.verdict import Verdict, verdicts
from tests.faults.suite.world import WORLD, World
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


class Report:
    """The tables so far, on the terminal and as Markdown."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.verdicts: list[Verdict] = []

    @property
    def is_exact(self) -> bool:
        return all(each.exact for each in self.outcomes) and all(
            each.is_exact for each in self.verdicts
        )

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._show(HEAD, [cells(each) for each in self.outcomes])

    def judge(self, found: list[Verdict]) -> None:
        self.verdicts = found
        self._show(events.HEAD, [each.cells() for each in found])
        print(f"{sum(each.happened for each in found):,} kills and events")
        for each in found:
            if not each.is_exact:
                print(each)

    def _show(self, head: Sequence[str], rows: list[list[str]]) -> None:
        shown = Table(*head)
        for row in rows:
            shown.add_row(*row)
        Console().print(shown)
        tables = [(events.HEAD, [each.cells() for each in self.verdicts])]
        tables.append((HEAD, [cells(each) for each in self.outcomes]))
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(
            "\n".join(markdown(*table) for table in tables if table[1]), encoding="utf-8"
        )


def markdown(head: Sequence[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def live_through(world: World, seed: int, count: int, minutes: float) -> list[Verdict]:
    """Let all pipelines of a world live through that many random events."""
    print(f"seed {seed}", flush=True)
    tell = partial(print, flush=True)
    events = chosen_events(seed, count)
    trouble, sent = run_events(world, seed, events, tell, seconds=60 * minutes)
    return verdicts(world, trouble.tally, trouble.letters, sent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make faults ARGS=...")
    parser.add_argument("--events", type=int, default=36, help="events, each for all sinks at once")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no other event is begun after that time"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--kills", type=int, default=6, help="kills of each sink by itself")
    parser.add_argument("--sinks", nargs="*", choices=EXACT, default=EXACT, metavar="SINK")
    parser.add_argument(
        "--troubles", type=int, default=4, help="kills of the broker and of PostgreSQL"
    )
    parser.add_argument(
        "--away", type=float, default=120, help="seconds that PostgreSQL is stopped"
    )
    parser.add_argument("--folder", type=Path, help="a new folder for all files, which stays")
    given = parser.parse_args()
    report = Report()
    add = report.add

    with ExitStack() as stack:
        broker = stack.enter_context(Broker())
        postgres = stack.enter_context(Postgres(fsync="on"))
        temporary = tempfile.TemporaryDirectory(prefix="penstock-faults-")
        folder = given.folder or Path(stack.enter_context(temporary))

        def place() -> tuple[str, Path]:
            name = f"faults-{os.getpid()}-{len(report.outcomes)}"
            (folder / name).mkdir(parents=True)
            return name, folder / name

        sinks = tuple(sink for sink in WORLD if sink in given.sinks)
        if given.events and sinks:
            (folder / "world").mkdir(parents=True)
            where = Setting(
                broker.connection, f"w{os.getpid()}", folder / "world", postgres.url, PASSWORD
            )
            report.judge(live_through(World(where, sinks), given.seed, given.events, given.minutes))
        for target in given.sinks if given.kills else ():
            setting = Setting(broker.connection, *place(), postgres.url, PASSWORD)
            add(run(target, setting, count=given.kills, report=print))
        if given.troubles:
            add(broker_killed(*place(), count=given.troubles, report=print))
            add(database_killed(broker.connection, *place(), count=given.troubles, report=print))
        if given.away:
            peaks = []
            for stopped in (False, True):
                how = {"seconds": given.away, "stopped": stopped}
                outcome, peak = database_away(broker.connection, *place(), **how)
                add(outcome)
                peaks.append(f"{peak / 2**20:,.0f} MB")
            print(f"peak of memory: {peaks[0]} undisturbed, {peaks[1]} with PostgreSQL away")
        stop_session()
    if not report.is_exact:
        sys.exit("some records were lost or duplicated")


if __name__ == "__main__":
    main()
