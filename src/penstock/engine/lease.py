"""Holds a pipeline's state behind a URI for one process, where no lock of a file system reaches.

The holder has a numbered file in the state folder and renews it. A number can be made once: one process
takes over from a holder that is gone, and the holder, if it wakes up, sees a greater number and stops.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any
from uuid import uuid4

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, FencedError, PenstockError
from penstock.pipeline.storage import Folder
from penstock.retry import wait_for

log = event_logger(__name__)

RENEW = 15.0
"""How often the holder renews, in seconds."""
STALE = 60.0
"""For how long a lease must not change to be taken over from another machine, in seconds."""

# When a process was started, where the system does not say.
_UNKNOWN = "unknown"

OnLost = Callable[[FencedError], None]


class Lease:
    """The right of one process to use a state folder; `with` takes it, renews it and gives it back."""

    def __init__(
        self,
        folder: Callable[[], Folder | None],
        name: str,
        on_lost: OnLost,
        *,
        renew: float | None = None,
        stale: float | None = None,
        at_once: bool = False,
    ) -> None:
        # Returns None while Java, through which the folder is reached, is being started again.
        self._find_folder = folder
        self._name = name
        self._on_lost = on_lost
        self._renew, self._stale = renew or RENEW, stale or STALE
        # Whether another process that has it is not waited for.
        self._at_once = at_once
        self._owner = uuid4().hex
        self._number = 0
        self._released = Event()

    def __enter__(self) -> Lease:
        self.take()
        Thread(target=self._keep, name=f"{self._name}-lease", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()

    def take(self) -> None:
        """Take the lease, or take it over from a holder that is gone.

        Raises
        ------
        ConfigError
            When another process has it and renews it.
        """
        if (folder := self._find_folder()) is None:
            return
        while True:
            newest = max(_numbers(folder), default=0)
            if newest and not self._at_once:
                self._wait_until_gone(folder, newest)
            if folder.create(_file(newest + 1), self._text()):
                self._number = newest + 1
                break
        for number in _numbers(folder):
            if number < self._number:
                folder.remove(_file(number))

    def renew(self) -> None:
        """Write down that the holder is alive.

        Raises
        ------
        FencedError
            When another process has taken the lease over.
        """
        if (folder := self._find_folder()) is None:
            return
        held = _read(folder, self._number) or {}
        newest = max(_numbers(folder), default=0)
        if newest != self._number or held.get("owner") != self._owner:
            other = _read(folder, newest) or {}
            raise FencedError(
                f"another process runs the pipeline {self._name!r}: {_who(other)} took over its state "
                f"under {folder.uri}, because this process did not renew its lease for {self._stale:g} s"
            )
        folder.write(_file(self._number), self._text())

    def release(self) -> None:
        """Give the lease back; a process that asks for it next has it at once."""
        if self._released.is_set():
            return
        self._released.set()
        if folder := self._find_folder():
            held = _read(folder, self._number) or {}
            if held.get("owner") == self._owner:
                folder.remove(_file(self._number))

    def _keep(self) -> None:
        while not self._released.wait(self._renew):
            try:
                self.renew()
            except FencedError as lost:
                self._released.set()
                self._on_lost(lost)
            except Exception as error:  # Java or the store is away: what was lost is seen after it
                log.warning("lease_not_renewed", pipeline=self._name, reason=str(error)[:200])

    def _wait_until_gone(self, folder: Folder, number: int) -> None:
        """Return when a holder is known to be gone; a holder that renews is not."""
        first = _read(folder, number)

        def is_gone() -> bool:
            held = _read(folder, number)
            if held is not None and held != first:
                raise self._refusal(held, folder)
            return held is None or _is_dead(held)

        wait_for(is_gone, within=self._stale, every=min(1.0, self._renew / 4))

    def _refusal(self, held: dict[str, Any], folder: Folder) -> PenstockError:
        return ConfigError(
            f"pipeline {self._name!r} already runs in another process ({_who(held)}) with its state "
            f"under {folder.uri}; stop that one, or give this one another name"
        )

    def _text(self) -> str:
        return json.dumps({"owner": self._owner, "renewed": time.time(), **_process(os.getpid())})


def _is_dead(held: dict[str, Any]) -> bool:
    """Return whether the holder was a process of this machine that has ended."""
    own = _process(os.getpid())
    if held.get("machine") != own["machine"] or not isinstance(held.get("pid"), int):
        return False
    return _started(held["pid"]) not in (held.get("started"), _UNKNOWN)


def _process(pid: int) -> dict[str, Any]:
    """Describe a process uniquely across machines and containers."""
    return {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": pid,
        "started": _started(pid),
    }


def _machine() -> str:
    """Return an id of this boot and container, in which a pid belongs to one process at a time."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """Return when a process was started; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]  # ended, and not waited for by its parent
    except OSError:
        # A system without /proc, or another user's process that the mount option hidepid hides.
        return _UNKNOWN if _runs(pid) else None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _who(held: dict[str, Any]) -> str:
    return f"process {held.get('pid', '?')} on {held.get('host', 'an unknown host')}"


def _read(folder: Folder, number: int) -> dict[str, Any] | None:
    text = folder.read(_file(number))
    return json.loads(text) if text else None


def _file(number: int) -> str:
    return f"lease/{number:020}.json"


def _numbers(folder: Folder) -> list[int]:
    names = (name.removesuffix(".json") for name in folder.names("lease"))
    return sorted(int(name) for name in names if name.isdigit())
