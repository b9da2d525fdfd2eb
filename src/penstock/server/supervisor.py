"""Supervises the worker processes of this machine: starts them, and starts again those that die.

Workers are processes of their own: they go on when the server ends, and the next server of the same
store finds them by a variable of their environment, also before they have joined the store.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import IO

import psutil

from penstock.config.directories import log_dir
from penstock.config.logs import event_logger
from penstock.control.liveness import clock, has_ended
from penstock.control.places import SUPERVISED
from penstock.control.store import ControlStore
from penstock.errors import SetupError, TransientError

log = event_logger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
# A worker that ran for this long before it died is started again without a wait.
_STEADY = 60.0
# How long processes get to end by themselves when everything is to end at once.
_AT_ONCE = 3.0
# A log that is larger is put aside when the next worker starts.
_LARGEST_LOG = 50_000_000


@dataclass
class Slot:
    """The place of one worker: its process, and when the next one may be started."""

    number: int
    process: psutil.Process | None = None
    started: float = 0.0
    failures: int = 0
    not_before: float = 0.0

    def is_running(self) -> bool:
        """Return whether the process is there; one that has ended and waits for its parent is not."""
        if self.process is None:
            return False
        try:
            return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


@dataclass
class Supervisor:
    """Keeps `count` workers running; `command` and `environment` are those of one worker.

    A worker that was found keeps the options that it was started with.
    """

    store: ControlStore
    count: int
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    every: float = 1.0
    slots: list[Slot] = field(init=False)
    _ended: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)
    # Open while no other server of this machine has workers of this store.
    _lock: IO[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.slots = [Slot(number) for number in range(self.count)]

    def begin(self) -> None:
        """Find the workers of this machine that run already, and start those that are missing."""
        self._lock = _lock(self._place)
        self._adopt()
        if not self.count:
            self._unlock()
        self._thread = Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Stop supervising; the workers go on."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(10)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def stop(self, grace: float = 300.0) -> None:
        """Let workers finish their batches and give their deployments up; kill those that take longer."""
        self.leave()
        processes = [slot.process for slot in self.slots if slot.is_running() and slot.process]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        for slow in psutil.wait_procs(processes, timeout=grace)[1]:
            for process in _family(slow):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def stop_now(self) -> None:
        """End every worker without waiting for batches: a second signal, then kill."""
        self._ended.set()
        processes = [slot.process for slot in self.slots if slot.is_running() and slot.process]
        family = [each for process in processes for each in _family(process)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        left = psutil.wait_procs(family, timeout=_AT_ONCE)[1]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=_AT_ONCE)

    def pids(self) -> list[int]:
        """Return the numbers of the worker processes that run."""
        return [slot.process.pid for slot in self.slots if slot.is_running() and slot.process]

    def step(self) -> None:
        """Look after each worker once."""
        for slot in self.slots:
            if slot.is_running():
                continue
            if slot.process is not None:
                self._died(slot)
            if clock() >= slot.not_before:
                self._start(slot)

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self.step()
            except TransientError as error:
                log.warning("store_away", reason=str(error))
            except Exception:  # the supervisor itself must not end silently
                log.exception("supervisor_step_failed")
            self._ended.wait(self.every)

    @property
    def _place(self) -> str:
        """Return where the store is, from any folder."""
        database = self.store.database
        return str(database.file or database.place)

    def _adopt(self) -> None:
        existing = _supervised(self._place)
        for slot, process in zip(self.slots, existing, strict=False):
            slot.process, slot.started = process, clock()
            log.info("worker_found", pid=process.pid)
        if self._lock is None:
            return  # another server wants the others
        for process in existing[self.count :]:
            log.warning("worker_not_needed", pid=process.pid, workers=self.count)
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)

    def _died(self, slot: Slot) -> None:
        """Free what the process held: it cannot write any more.

        A worker of another machine may have the same host name and process number: it may live.
        """
        pid = slot.process.pid if slot.process else 0
        steady = clock() - slot.started > _STEADY
        slot.failures = 0 if steady else slot.failures + 1
        wait = 0.0 if steady else min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (slot.failures - 1))
        log.warning("worker_died", pid=pid, next_start_in=wait, log=str(_log_file(slot)))
        slot.process, slot.not_before = None, clock() + wait
        mine = f"{socket.gethostname()}-{pid}-"
        for row in self.store.workers.all():
            if row.id.startswith(mine) and has_ended(row.process):
                self.store.leases.expire(row.id)
                self.store.workers.leave(row.id)

    def _start(self, slot: Slot) -> None:
        file = _log_file(slot)
        marked = {**self.environment, SUPERVISED: self._place}
        slot.process, slot.started = _start_process(self.command, marked, file), clock()
        log.info("worker_started", pid=slot.process.pid, log=str(file))


def worker_command(*options: str) -> list[str]:
    """Return the command of one worker; where its store is, it reads from its environment."""
    return [sys.executable, "-m", "penstock", "--log-format", "json", "worker", *options]


def _start_process(
    command: Sequence[str], environment: Mapping[str, str], log_file: Path
) -> psutil.Process:
    """Start a process that outlives this one, with its output in a file."""
    if log_file.exists() and log_file.stat().st_size > _LARGEST_LOG:
        log_file.replace(log_file.with_suffix(".log.1"))
    with log_file.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=os.environ | environment,
        )  # fmt: skip
    # Before anyone waits for it: a process that has ended already can still be looked at.
    started = psutil.Process(process.pid)
    Thread(target=process.wait, name=f"worker-{process.pid}", daemon=True).start()
    return started


def _log_file(slot: Slot) -> Path:
    return log_dir() / f"worker-{slot.number}.log"


def _lock(place: str) -> IO[str] | None:
    """Return the locked file of the servers with workers of a store; None if another one has it."""
    name = hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    with ExitStack() as opened:
        try:
            file = opened.enter_context((log_dir() / f"servers-{name}.lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (
            OSError,
            SetupError,
        ):  # locked, or no folder to write to, which not every server needs
            return None
        opened.pop_all()
        return file


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return [process]


def _supervised(place: str) -> list[psutil.Process]:
    """Return the workers of a store that an earlier server of this user started, the oldest first.

    A worker removes the variable from what its own processes inherit.
    """
    own = [process for process in psutil.process_iter() if _is_marked(process, place)]
    return sorted(own, key=lambda process: process.create_time())


def _is_marked(process: psutil.Process, place: str) -> bool:
    try:
        if os.getsid(process.pid) != process.pid or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.environ().get(SUPERVISED) == place
    except (psutil.Error, OSError):
        return False
