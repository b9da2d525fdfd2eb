"""The real parent of each child process, so that a child never outlives the Python that started it.

Started as a plain script (standard library only, so that it is up in milliseconds). A kernel death
signal alone would not do: it follows the thread that started the child, not the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROTATE_BYTES = 20_000_000
KEPT = 3
PR_SET_PDEATHSIG = 1


class Log:
    """The child's output in a file; full or from an earlier run, it becomes FILE.1, FILE.2, ..."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open_new()

    def write(self, data: bytes) -> None:
        """Append, and start a new file when this one is large."""
        self.file.write(data)
        if self.file.tell() > ROTATE_BYTES:
            self.file.close()
            self._open_new()

    def _open_new(self) -> None:
        older = [self.path.with_name(f"{self.path.name}.{number}") for number in range(1, KEPT + 1)]
        logs = [self.path, *older]
        for number in range(KEPT, 0, -1):
            if logs[number - 1].exists():
                logs[number - 1].replace(logs[number])
        self.file = self.path.open("wb", buffering=0)


class Guard:
    """One child, its log, and the parent that is watched."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.parent = plan["parent"]
        self.stop_by: float | None = None
        self.log = Log(Path(plan["log"]))
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.child = subprocess.Popen(
            plan["command"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_the_guard,  # noqa: PLW1509 - this process has one thread
        )

    def run(self) -> int:
        """Copy output until the child is gone; end it when the parent is."""
        assert self.child.stdout is not None  # noqa: S101
        output = self.child.stdout.fileno()
        watched = [output] if self.plan["detached"] else [output, 0]
        while self.child.poll() is None:
            ready, _, _ = select.select(watched, [], [], 0.25)
            if output in ready and not self._copy(output):
                watched.remove(output)
            if not self.plan["detached"] and (0 in ready or os.getppid() != self.parent):
                return self._parent_is_gone(output)
            self._lose_patience()
        while self._copy(output):
            pass
        return self.child.returncode

    def stop(self) -> None:
        """Ask the child to exit; the loop kills it when the grace period is over."""
        if self.stop_by is None:
            self.stop_by = time.monotonic() + self.plan["grace"]
            self.child.terminate()

    def keep(self) -> None:
        """Rename a file that the child wrote at exit to its final name."""
        for written, name in self.plan["keep"]:
            if Path(written).is_file():
                Path(written).replace(name)

    def _copy(self, output: int) -> bool:
        data = os.read(output, 65536)
        self.log.write(data)
        return bool(data)

    def _lose_patience(self) -> None:
        if self.stop_by is not None and time.monotonic() > self.stop_by:
            self.child.kill()

    def _parent_is_gone(self, output: int) -> int:
        # The parent is gone: data that is kept is closed cleanly, the rest is dropped.
        if self.plan["remove"]:
            self.child.kill()
        self.stop()
        while self.child.poll() is None:
            ready, _, _ = select.select([output], [], [], 0.1)
            if ready and not self._copy(output):
                self.child.wait()
            self._lose_patience()
        if self.plan["remove"]:
            shutil.rmtree(self.plan["remove"], ignore_errors=True)
        return self.child.returncode


def die_with_the_guard() -> None:
    """Let the kernel end the child if the guard itself is killed with -9 (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Start the child, report its process id to the parent, and wait until it ends."""
    guard = Guard(json.loads(sys.argv[1]))
    os.write(1, f"{guard.child.pid}\n".encode())
    os.close(1)
    code = guard.run()
    guard.keep()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
