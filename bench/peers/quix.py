"""Quix Streams in an environment of its own, with a process for each core: they share one group.

The clock starts with the first record that any of them has processed and stops when the last one has
committed: starting Python and joining the group do not count.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.data import PARTITIONS
from bench.harness import GaveUpError
from bench.peers.environment import python
from penstock.embedded.process import tail

APPLICATION = Path(__file__).with_name("quix_app.py")
PROCESSES = 2
_numbers = itertools.count()


def run(topic: str, rows: int, folder: Path, task: dict[str, Any], limit: float) -> float:
    """Let the application drain the topic into its sink; return the seconds of the work itself."""
    task = task | {
        "topic": topic,
        "group": f"quix-{os.getpid()}-{next(_numbers)}",
        "last_offset": rows // PARTITIONS - 1,
        "share": PARTITIONS // PROCESSES,
    }
    folder.mkdir(parents=True, exist_ok=True)
    deadline, started = time.monotonic() + limit, time.time()
    children = [_start(task, folder, number) for number in range(PROCESSES)]
    try:
        for child in children:
            _line(child, folder)
        for child in children:
            print(file=child.stdin, flush=True)
        # Each ends by itself; the deadline is for the one that does not.
        for child in children:
            child.wait(max(0.1, deadline - time.monotonic()))
        spans = [json.loads(_line(child, folder)) for child in children]
    except subprocess.TimeoutExpired:
        raise GaveUpError(f"Quix Streams was not done after {limit:g} s") from None
    finally:
        for child in children:
            _end(child)
    began = min(span["began"] for span in spans)
    print(f"  start-up of Quix Streams, not counted below: {began - started:.1f} s", flush=True)
    return float(max(span["ended"] for span in spans) - began)


def _start(task: dict[str, Any], folder: Path, number: int) -> subprocess.Popen[str]:
    with (folder / f"_quix-{number}.log").open("wb") as log:
        return subprocess.Popen(
            [python("quix"), APPLICATION, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for us: we end it by its id
        )


def _line(child: subprocess.Popen[str], folder: Path) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        said = [text for log in sorted(folder.glob("_quix-*.log")) for text in tail(log, 3)]
        raise GaveUpError(f"Quix Streams ended with exit code {child.wait(30)}: {' | '.join(said)}")
    return line


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe:
            pipe.close()
