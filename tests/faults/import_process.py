"""`penstock run` of an import in a process of its own, which is killed at a point or suspended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from tests.faults.suite.rounds import ROOT

from penstock import Connection

# What the older one of two processes ends with.
FENCED = "was started by another process"
# A busy machine may take minutes to start Spark.
PATIENCE = 300.0


def written(file: Path, connection: Connection, name: str, source: dict[str, Any]) -> Path:
    """Write the definition of an import into the topic of its name; JSON is YAML, too."""
    definition = {
        "name": name,
        "connection": {"brokers": connection.brokers},
        "source": source,
        "sink": {"kafka": name},
        "restart": {"wait": "100ms", "longest": "1s"},
    }
    file.write_text(json.dumps(definition))
    return file


def run(definition: Path, point: str) -> int:
    """Run the import until it has read everything, or is killed at a point."""
    process = started(definition, point, "--once")
    try:
        return process.wait(PATIENCE)
    finally:
        process.kill()


def started(definition: Path, point: str = "", *flags: str) -> subprocess.Popen[bytes]:
    """Start the import; what it prints is in a file next to the definition."""
    injected = str(ROOT / "tests/faults/suite/injection")
    paths = [injected, *filter(None, [os.environ.get("PYTHONPATH")])]
    with _output(definition).open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(definition), *flags],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "FAULT_POINT": point},
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def printed(definition: Path) -> str:
    """Return what the process of a definition printed, without its line breaks."""
    return " ".join(_output(definition).read_text().split())


def _output(definition: Path) -> Path:
    return definition.with_suffix(".out")


@contextmanager
def suspended(process: subprocess.Popen[bytes]) -> Iterator[Callable[[], None]]:
    """Suspend a process with all its children; give what wakes them up, which its end does, too."""
    top = psutil.Process(process.pid)
    family = [top, *top.children(recursive=True)]

    def wake() -> None:
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.resume()

    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.suspend()
    try:
        yield wake
    finally:
        wake()


_PROGRAM = """
import os, sys
os.environ["FAULT_DRIVER"] = str(os.getpid())
from penstock.cli.main import app
sys.exit(app(["run", *sys.argv[1:]], standalone_mode=False) or 0)
"""
