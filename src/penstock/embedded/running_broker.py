"""The record of the broker that a user started, so that other commands can use and stop it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil
import yaml

from penstock.config.directories import data_dir
from penstock.embedded.broker import Broker
from penstock.embedded.embedded_registry import SchemaRegistry
from penstock.embedded.home import write_private
from penstock.embedded.process import Child
from penstock.errors import SetupError

STOP_WITHIN = 40.0


@dataclass(frozen=True)
class Program:
    """A process, with its start time: a number alone may be another process's by now."""

    name: str
    pid: int
    started: float
    log: str

    @property
    def alive(self) -> bool:
        """Return whether exactly this process is still running."""
        return self.find() is not None

    def find(self) -> psutil.Process | None:
        """Return the process, unless it is gone or its number went to another one."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 1.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None


@dataclass(frozen=True)
class Running:
    """A broker that was started from the command line."""

    bootstrap_servers: str
    protocol: str
    data_dir: str
    temporary: bool
    detached: bool
    registry_url: str | None
    since: str
    programs: list[Program]

    @property
    def healthy(self) -> bool:
        """Return whether all its processes are running."""
        return all(program.alive for program in self.programs)

    def as_dict(self) -> dict[str, Any]:
        """Return everything that a script may ask for; there is no secret in it."""
        programs = [asdict(each) | {"alive": each.alive} for each in self.programs]
        return {**asdict(self), "healthy": self.healthy, "programs": programs}


def state_path() -> Path:
    """Return the file that describes the running broker."""
    return _folder() / "state.json"


def connection_path() -> Path:
    """Return where other commands look for the embedded broker's connection."""
    return data_dir() / "embedded.yaml"


def default_data() -> Path:
    """Return the default data folder of a detached broker."""
    return _folder() / "data"


def _folder() -> Path:
    folder = data_dir() / "broker"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Reserve the running broker while it starts; refuse if one is already running."""
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if running := find():
            raise SetupError(
                f"A broker is running already at {running.bootstrap_servers}; stop it with "
                "'penstock broker stop', or use it: its connection is called 'embedded'"
            )
        yield


def remember(broker: Broker, registry: SchemaRegistry | None) -> Running:
    """Store the broker, with its connection under the name `embedded`."""
    programs = [
        _program(f"node-{number}", child) for number, child in enumerate(broker.children, start=1)
    ]
    programs += [_program("registry", child) for child in (registry.children if registry else [])]
    running = Running(
        bootstrap_servers=broker.bootstrap_servers,
        protocol=broker.security.protocol,
        data_dir=str(broker.data_dir),
        temporary=broker.temporary,
        detached=broker.detached,
        registry_url=registry.url if registry else None,
        since=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        programs=programs,
    )
    connections = {"connections": {"embedded": broker.client_settings}}
    write_private(connection_path(), yaml.safe_dump(connections, sort_keys=False))
    write_private(state_path(), json.dumps(asdict(running), indent=2))
    return running


def _program(name: str, child: Child) -> Program:
    pid = child.guard_pid
    return Program(name, pid, psutil.Process(pid).create_time(), str(child.log))


def find() -> Running | None:
    """Return the running broker; remove the files of a dead one."""
    try:
        content = json.loads(state_path().read_text(encoding="utf-8"))
        content["programs"] = [Program(**program) for program in content["programs"]]
        running = Running(**content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        # A file of another version, or half a file: nothing in it can be trusted.
        forget()
        return None
    if any(program.alive for program in running.programs):
        return running
    forget()
    return None


def forget() -> None:
    """Remove what `remember` wrote."""
    connection_path().unlink(missing_ok=True)
    state_path().unlink(missing_ok=True)


def stop() -> Running | None:
    """Stop the running broker and return its description, or None if there was none."""
    running = find()
    if running is None:
        return None
    processes = [process for program in running.programs if (process := program.find())]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    _, left = psutil.wait_procs(processes, timeout=STOP_WITHIN)
    if left:
        numbers = ", ".join(str(process.pid) for process in left)
        raise SetupError(f"The broker did not stop in {STOP_WITHIN:g} s; left: process {numbers}")
    forget()
    return running
