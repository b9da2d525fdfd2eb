"""A process that hosts a world, from outside: its reports, and how it is killed, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import psutil
from tests.faults.suite.world import Run, World

ROOT = Path(__file__).parents[3]
INJECTION = Path(__file__).parent / "injection"
# How long anything may take on a busy machine.
PATIENCE = 300.0
# It lives for seconds: the best code would never pay off, and takes half of its time to compile.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def environment(point: str = "", clock: float = 0.0) -> dict[str, str]:
    """Return the variables of a process with a point to be killed at, and a clock that is wrong."""
    paths = [str(INJECTION), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "FAULT_POINT": point, "FAULT_CLOCK": str(clock)}
    return os.environ | own | {"JAVA_TOOL_OPTIONS": _SHORT_LIVED}


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and all below it: Python, Java and Spark's workers; none if it has ended."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


class Host:
    """One process with the pipelines of a world in it."""

    def __init__(
        self, world: World, run: Run, log: Path, *, point: str = "", clock: float = 0.0
    ) -> None:
        self.run, self.log = run, log
        self.batches = dict.fromkeys(run.states, 0)
        self.failed: dict[str, tuple[str, str]] = {}
        self.ended: set[str] = set()
        # Failures that were expected, and looked at.
        self.judged: set[str] = set()
        self._changed = Condition()
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.suite.world_driver", world.written(),
                 run.written()],
                stdout=subprocess.PIPE, stderr=output, env=environment(point, clock), cwd=ROOT,
            )  # fmt: skip
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.log.open("ab") as output:
            for line in self.process.stdout:
                output.write(line)
                output.flush()
                with suppress(json.JSONDecodeError):
                    self._note(json.loads(line))
        with self._changed:
            self._changed.notify_all()

    def _note(self, said: dict[str, Any]) -> None:
        with self._changed:
            if said["what"] == "batch":
                self.batches[said["sink"]] = said["batches"]
            elif said["what"] == "failed":
                self.failed[said["sink"]] = said["type"], said["text"]
            elif said["what"] == "ended":
                self.ended.add(said["sink"])
            self._changed.notify_all()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def live(self) -> list[str]:
        """The sinks whose pipelines have neither failed nor ended."""
        return [s for s in self.run.states if s not in self.failed and s not in self.ended]

    def with_batches(self, least: int = 1) -> list[str]:
        return [sink for sink in self.live if self.batches[sink] >= least]

    def until(self, condition: Callable[[], Any], timeout: float = PATIENCE) -> bool:
        """Wait for something that it reports, or its end; return whether the condition holds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition() and self.alive and time.monotonic() < deadline:
                self._changed.wait(0.5)
        return bool(condition())

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to Python, to Java and to Spark's workers."""
        for process in family_of(self.process.pid):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def kill(self) -> None:
        """Kill -9 all of it at the same moment."""
        self.signal_all(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """End it in order, as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        ended = self.wait()
        assert ended in (0, -signal.SIGKILL), f"it ended with {ended}: {self.last_output()}"

    def wait(self, timeout: float = PATIENCE) -> int:
        code = self.process.wait(timeout)
        self._reader.join(PATIENCE)
        return code

    def last_output(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]
