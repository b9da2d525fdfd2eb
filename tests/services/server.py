"""What the real servers of the tests share: a Debian package, a user that is not root, a hard end."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from typing_extensions import Self

from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child

# Debian would create a cluster of its own, and start it, when the package comes in.
_NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


def install(package: str, found: Callable[[], Path | None]) -> Path:
    """Return the server's program, installed where it is missing; without the right to, a failure."""
    if (program := found()) is not None:
        return program
    if os.geteuid() != 0:
        raise RuntimeError(f"this test needs a real server: apt-get install {package}")
    if not _NO_CLUSTER.exists():
        _NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
        _NO_CLUSTER.write_text("create_main_cluster = false\n")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    # Tests run in several processes, and each may come here.
    apt = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
    with (Path(tempfile.gettempdir()) / "penstock-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([*apt, "update"], env=quiet, check=False)
        command = [*apt, "install", "--no-install-recommends", package]
        subprocess.run(command, env=quiet, check=True, stdout=subprocess.DEVNULL)
    if (program := found()) is None:
        raise RuntimeError(f"{package} was installed and its server is not to be found")
    return program


def as_user(user: str, command: Sequence[str | Path]) -> list[str | Path]:
    """Return the command run as this user where we are root: database servers refuse to be root."""
    if os.geteuid() != 0:
        return list(command)
    entry = pwd.getpwnam(user)
    rights = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return ["setpriv", *rights, *command]


class Server:
    """A server in a folder of its own on a free port: stop it, kill it -9, start it again."""

    def __init__(
        self, user: str, name: str, package: str, found: Callable[[], Path | None]
    ) -> None:
        self.program = install(package, found)  # first of all: the user comes with it
        self.user = user
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"penstock-{name}-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, user)
        (self.port,) = free_ports(1)
        self.host = HOST
        self.child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def run(self, command: Sequence[str | Path]) -> None:
        """Run a program of the server to its end, as the server's user."""
        subprocess.run(
            as_user(self.user, command), check=True, stdout=subprocess.DEVNULL, cwd=self.folder
        )

    def begin(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        """Start the server's process and wait until it answers."""
        log = self.folder / "log"
        self.child = Child(as_user(self.user, command), log=log, grace=20, remove=self.folder)
        self.child.wait_until(ready, timeout=60, what=self.name)

    def end(self, how: signal.Signals) -> None:
        """End the server and everything it started, with this signal."""
        if self.child is None:
            return
        server = psutil.Process(self.child.pid)
        family = [server, *server.children(recursive=True)]
        for process in family if how is signal.SIGKILL else [server]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        self.child.wait(30)
        psutil.wait_procs(family, timeout=30)
        self.child = None

    def remove(self) -> None:
        """End it if it runs, and take its files away."""
        self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
