"""Follows a growing log file, over its rotation, as `tail -F` does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY = 0.2


def follow(
    log: Path, give: Callable[[bytes], None], ended: Callable[[], bool] = lambda: False
) -> None:
    """Give what is appended from now on, until `ended` says so or Ctrl-C."""
    file = log.open("rb")
    try:
        file.seek(0, 2)
        while True:
            over = ended()
            if data := file.read():
                give(data)
            elif over:
                return
            elif _rotated(log, file.fileno()):
                file.close()
                file = log.open("rb")
            else:
                time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        return
    finally:
        file.close()


def _rotated(log: Path, descriptor: int) -> bool:
    try:
        return log.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
