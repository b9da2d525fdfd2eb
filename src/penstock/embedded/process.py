"""A child process that ends with its parent, writes to a log file, and can be waited for."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.config.directories import log_dir
from penstock.errors import SetupError
from penstock.retry import wait_for

GUARD = Path(__file__).with_name("guard.py")
LOGS_KEPT = 60


class Child:
    """A running program. It ends with this process, even when this one is killed with -9.

    A `detached` child keeps running. `remove` names a folder that is deleted when this process is
    killed; `keep` is a file that the child writes when it exits, and its final name.
    Output is in `log`.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        grace: float = 10.0,
        detached: bool = False,
        remove: Path | None = None,
        keep: tuple[Path, Path] | None = None,
    ) -> None:
        self.log = log
        self.grace = grace
        self._keeps = keep is not None
        program = [str(part) for part in command]
        plan = {
            "command": program,
            "log": str(log),
            "grace": grace,
            "detached": detached,
            "remove": str(remove) if remove else None,
            "keep": [[str(path) for path in keep]] if keep else [],
            "parent": os.getpid(),
        }
        self._guard = _start_guard(plan)
        self.pid = _reported_pid(self._guard, program[0], log)

    @property
    def guard_pid(self) -> int:
        """Return the process that a SIGTERM should go to: it ends the child well, then itself."""
        return self._guard.pid

    @property
    def running(self) -> bool:
        """Return whether the child is still there."""
        return self._guard.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code (128 + signal when it was killed)."""
        return self._guard.wait(timeout)

    def wait_until(self, ready: Callable[[], bool], *, timeout: float, what: str) -> None:
        """Wait for a condition; an early death or a passed deadline raises with the last log lines."""

        def is_ready() -> bool:
            if not (done := ready()) and not self.running:
                raise SetupError(self._report(f"{what} ended with exit code {self.wait()}"))
            return done

        if not wait_for(is_ready, within=timeout, every=0.02):
            raise SetupError(self._report(f"{what} was not ready after {timeout:g} s"))

    def _report(self, problem: str) -> str:
        # Java's stack traces would push the reason itself out of sight.
        telling = [line for line in tail(self.log, 100) if not line.startswith(("\tat ", "\t..."))]
        lines = "\n".join(f"  {line}" for line in telling[-8:])
        return f"{problem}. Its last lines, from {self.log}:\n{lines}"

    def ask_to_stop(self, *, hard: bool = False) -> None:
        """Send SIGTERM and do not wait; SIGKILL follows when the grace is over.

        `hard` sends SIGKILL at once, but not to a child that has a file to write at its end.
        """
        if self.running and hard and not self._keeps:
            self._kill()
        elif self.running:
            self._guard.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL when the grace is over."""
        self.ask_to_stop()
        self.wait(self.grace + 10)
        self._close()

    def kill(self) -> None:
        """End it immediately with SIGKILL, like a crash."""
        self._kill()
        self.wait(10)
        self._close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _close(self) -> None:
        if self._guard.stdin:
            self._guard.stdin.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _start_guard(plan: dict[str, object]) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C in a terminal reaches Penstock alone, which then ends things in order.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(GUARD), json.dumps(plan)],
        stdin=subprocess.DEVNULL if plan["detached"] else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _reported_pid(guard: subprocess.Popen[bytes], program: str, log: Path) -> int:
    assert guard.stdout is not None and guard.stderr is not None  # noqa: S101
    with guard.stdout as output:
        line = output.readline()
    if not line:
        with guard.stderr as problems:
            reason = problems.read().decode(errors="replace").strip().splitlines()
        guard.wait()
        raise SetupError(
            f"{program} could not be started with its log at {log}: "
            f"{reason[-1] if reason else 'no reason given'}"
        )
    guard.stderr.close()
    return int(line)


def tail(log: Path, lines: int) -> list[str]:
    """Return the last lines of a log; none when there is no log yet."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400 * lines))
        return file.read().decode(errors="replace").splitlines()[-lines:]


def log_file(name: str) -> Path:
    """Return the path of a log, and drop the oldest logs of the same family so that they do not pile up.

    `name` is FAMILY-SOMETHING, for example broker-20131.
    """
    family = name.partition("-")[0]
    logs = sorted(log_dir().glob(f"{family}-*.log*"), key=_modified, reverse=True)
    for old in logs[LOGS_KEPT:]:
        old.unlink(missing_ok=True)
    return log_dir() / f"{name}.log"


def _modified(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
