"""Bytewax in an environment of its own, with a process for each core.

The clock starts with the first records that any process has parsed and stops when the last one has:
starting Python does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from bench.harness import GaveUpError
from bench.peers.environment import python

APPLICATION = Path(__file__).with_name("bytewax_app.py")
PROCESSES = 2


def run(topic: str, rows: int, folder: Path, brokers: str, limit: float) -> float:
    """Let the dataflow parse the whole topic; return the seconds of the work itself."""
    folder.mkdir(parents=True, exist_ok=True)
    task = {"topic": topic, "brokers": brokers, "folder": str(folder)}
    started = time.time()
    command = [python("bytewax"), "-m", "bytewax.testing", APPLICATION, "-p", str(PROCESSES)]
    with (folder / "_bytewax.log").open("wb") as log:
        try:
            done = subprocess.run(
                command,
                env=os.environ | {"TASK": json.dumps(task)},
                stdout=log,
                stderr=log,
                cwd=folder,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GaveUpError(f"Bytewax was not done after {limit:g} s") from None
    spans = [json.loads(file.read_text()) for file in folder.glob("_bytewax-*.json")]
    busy = [span for span in spans if span["rows"]]
    if done.returncode or sum(span["rows"] for span in busy) != rows:
        said = (folder / "_bytewax.log").read_text(errors="replace")[-300:]
        raise GaveUpError(f"Bytewax ended with {done.returncode} and {spans}: {said}")
    began = min(span["began"] for span in busy)
    print(f"  start-up of Bytewax, not counted below: {began - started:.1f} s", flush=True)
    return float(max(span["ended"] for span in busy) - began)
