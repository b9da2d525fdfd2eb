"""Runs commands of the pages: in a shell, in this process, or on a terminal of their own until Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.services.command_line import run_here

_PATIENCE = 300
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def run(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command in a shell; return its exit code and what it printed. Questions are answered y."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=dict(environment),
        input="y\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout


def is_one_run(command: str) -> bool:
    """Whether a command runs pipelines to the end of their topics, and nothing else."""
    return re.fullmatch(r"penstock (mirror )?run [^|<>;&$]* --once", command) is not None


def here(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command of Penstock in this process, whose working directory is the folder."""
    assert folder == Path.cwd()
    _, *arguments = shlex.split(command)
    done = run_here(*arguments, environment=environment)
    return done.returncode, done.stdout + done.stderr


def interrupt(
    command: str, folder: Path, environment: Mapping[str, str], ready: str
) -> tuple[int, str]:
    """Run a command on a terminal, press Ctrl-C when it has printed `ready`, and wait for its end."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", f"exec {command}"], dict(environment))
    printed, pressed, deadline = "", False, time.monotonic() + _PATIENCE
    while (piece := _read(terminal, deadline)) is not None:
        printed += _CONTROL.sub("", piece)
        if not pressed and re.search(ready, printed):
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), printed


def _read(terminal: int, deadline: float) -> str | None:
    """Return what came next, None at the end."""
    if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise TimeoutError("the command did not get ready, or did not end after Ctrl-C")
    try:
        piece = os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return None
    return piece.decode(errors="replace") or None
