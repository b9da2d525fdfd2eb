"""The identity of a process, and whether it is alive; without a clock if possible.

A process is identified by the boot of its machine, its namespace, its number and the tick at which it
started. None of them changes when a clock is set, and no two processes share them all.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import psutil

# A process of another machine that sent no heartbeat for this long is not running any more.
SILENT = 15.0
_PARTS = 4  # machine, process number, start, and a random text
# The start of a process that runs and that this user may not see, as with the mount option hidepid.
_HIDDEN = "hidden"


def this_process() -> str:
    """Return the unique name of this process."""
    return _name_of(os.getpid())


@lru_cache(maxsize=4)
def _name_of(pid: int) -> str:
    return f"{_machine()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:12]}"


def lives(owner: str, seen: float) -> bool:
    """Return whether the process of this name is alive, as far as this machine can tell.

    `seen` is the time of its last heartbeat, which counts for processes of other machines only. A time
    in the future is as suspicious as one long ago: some clock was set.
    """
    if not is_here(owner):
        return abs(time.time() - seen) < SILENT
    parts = owner.split("/")
    if len(parts) != _PARTS or not parts[1].isdecimal():
        return False
    return _started(int(parts[1])) in (parts[2], _HIDDEN)


def has_ended(owner: str) -> bool:
    """Return whether a process of this machine has ended; False where that cannot be known."""
    return bool(owner) and is_here(owner) and not lives(owner, 0.0)


def is_here(owner: str) -> bool:
    """Return whether a process belongs to this machine, so that it can be checked directly."""
    return owner.partition("/")[0] == _machine()


def clock() -> float:
    """Return seconds of a clock that also advances while the process, or the machine, is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return the boot id of this machine and the namespace of its process numbers."""
    boot, namespace = str(uuid.getnode()), ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    return f"{boot}-{namespace}"


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = stat.rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    except PermissionError:
        return _HIDDEN
    except (FileNotFoundError, ProcessLookupError):
        if _is_of_another_user(pid):
            return _HIDDEN
    try:
        return "" if Path("/proc/self").exists() else str(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return ""


def _is_of_another_user(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        pass
    return False
