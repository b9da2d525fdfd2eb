"""Kills a pipeline again and again while records flow, lets it finish, and counts what is in its sink."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.faults.suite.load import Load, is_bad, value
from tests.faults.suite.targets import BROKEN, COMMON, TARGETS, Setting

from penstock import Admin, Delivery
from penstock.testing import read_all

ROOT = Path(__file__).parents[3]
_INJECTION = Path(__file__).parent / "injection"
# How long a pipeline may take from its start to where it is killed, on a busy machine.
_PATIENCE = 240.0
# It lives for seconds: optimized compilation would not pay off, and takes half of its time.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


@dataclass
class Outcome:
    """What a pipeline's kills did to its records."""

    sink: str
    delivery: str
    rounds: int = 0
    kills: int = 0
    records: int = 0
    lost: int = 0
    duplicated: int = 0
    letters: int = 0
    letters_lost: int = 0
    letters_duplicated: int = 0
    behind: int = 0

    @property
    def exact(self) -> bool:
        wrong = (
            self.lost,
            self.duplicated,
            self.letters_lost,
            self.letters_duplicated,
            self.behind,
        )
        return not any(wrong)


class Driver:
    """One process with the pipeline in it."""

    def __init__(
        self, target: str, setting: Setting, delivery: Delivery, *flags: str, point: str = ""
    ) -> None:
        command = [sys.executable, "-m", "tests.faults.suite.driver", target, setting.written()]
        paths = [str(_INJECTION), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log = (setting.folder / "driver.log").open("ab")
        self.process = subprocess.Popen(
            [*command, delivery.value, *flags],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(paths), "FAULT_POINT": point}
            | {"JAVA_TOOL_OPTIONS": _SHORT_LIVED},
            cwd=ROOT,
        )
        self.log = setting.folder / "driver.log"

    def until_batches(self, count: int) -> None:
        """Wait until so many batches are done, or the process has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if int(line) >= count:
                return

    def kill(self) -> None:
        """Kill -9: the Python process and Spark's Java process at the same moment."""
        try:
            others = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            others = []
        self.process.send_signal(signal.SIGKILL)
        for process in others:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.end()

    def end(self, timeout: float = _PATIENCE) -> int:
        """Wait for the end of the process and return its exit code."""
        try:
            return self.process.wait(timeout)
        finally:
            self._log.close()

    def last_output(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def kills(dice: random.Random, target: str, count: int) -> Iterator[str]:
    """Aimed points, each in its turn, and random moments between them; '' is a random moment."""
    # A sink that is broken on purpose is killed only where that must show.
    points = [*TARGETS[target].points, *(COMMON if target not in BROKEN else ())]
    dice.shuffle(points)
    for number in range(count):
        yield points[number // 2 % len(points)] if number % 2 == 0 else ""


def run(
    target: str,
    setting: Setting,
    *,
    delivery: Delivery = Delivery.EXACTLY_ONCE,
    count: int = 4,
    report: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Kill one pipeline `count` times, then count the records."""
    dice = random.Random(f"{target} {setting.name}")
    outcome = Outcome(target, delivery.value)
    with Load(setting.connection, setting.name) as load:
        for point in kills(dice, target, count):
            outcome.rounds += 1
            outcome.kills += _killed(dice, Driver(target, setting, delivery, point=point), point)
            report(f"{target}: kill {outcome.kills} of {count}, {point or 'at random'}")
    finish(target, setting, delivery)
    return counted(target, setting, load.sent, outcome)


def _killed(dice: random.Random, driver: Driver, point: str) -> int:
    """Let the process run into its end; say whether it was killed."""
    if point:
        try:
            driver.end(60)
        except subprocess.TimeoutExpired:
            driver.kill()  # the point was not reached: a kill at a random moment then
        ended = driver.process.returncode
    else:
        driver.until_batches(dice.choice([0, 1, 1, 2]))
        time.sleep(dice.uniform(0, 1.5))  # the moment of the kill is the point, not a wait
        driver.kill()
        ended = driver.process.returncode
    assert ended == -signal.SIGKILL, f"it ended by itself ({ended}): {driver.last_output()}"
    return 1


def finish(target: str, setting: Setting, delivery: Delivery) -> None:
    """Let the pipeline read what is left, undisturbed."""
    last = Driver(target, setting, delivery, "--once")
    last.until_batches(1_000_000)
    assert last.end() == 0, last.last_output()


def behind(setting: Setting) -> int:
    """Return by how many records the pipeline's group is behind the end of its topic."""
    with Admin(setting.connection) as admin:
        committed = admin.committed(setting.name)
        ends = admin.latest(admin.partitions([setting.name]))
    return sum(end - committed.get(partition, 0) for partition, end in ends.items())


def counted(target: str, setting: Setting, sent: int, outcome: Outcome) -> Outcome:
    """Compare what was sent with what is in the sink, the dead letters and the group."""
    rows = Counter(n for _, _, n in TARGETS[target].rows(setting))
    letters = Counter(r.value for r in read_all(setting.connection, f"{setting.name}.dead-letters"))
    good = [n for n in range(sent) if not is_bad(n)]
    bad = [value(n) for n in range(sent) if is_bad(n)]
    outcome.records, outcome.letters = sent, len(bad)
    outcome.lost = sum(1 for n in good if n not in rows)
    outcome.duplicated = sum(rows.values()) - len(rows)
    outcome.letters_lost = sum(1 for v in bad if v not in letters)
    outcome.letters_duplicated = sum(letters.values()) - len(letters)
    assert rows.keys() <= set(good), "rows that were not sent"
    outcome.behind = behind(setting)
    return outcome
