"""Peak memory while a backlog drains, and while one ten times larger does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import psutil

from bench.data import SCHEMA, fill
from bench.harness import OUT
from penstock.config import Connection

mpl.use("Agg")
from matplotlib import pyplot as plt

_DEFINITION = """\
name: {topic}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: {topic}}}
decode: {{json: {{schema: "{schema}"}}}}
sink: {{files: "{folder}/{topic}"}}
state: "{folder}/state"
"""

Curve = list[tuple[float, float]]


def run(connection: Connection, small: int, factor: int) -> None:
    curves: dict[int, Curve] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        for rows in (small, small * factor):
            topic = f"memory-{rows}"
            print(f"  memory: filling {topic}", flush=True)
            fill(connection, topic, rows)
            curves[rows] = _drain(connection, topic, Path(scratch))
    _report(curves)


def _drain(connection: Connection, topic: str, folder: Path) -> Curve:
    definition = folder / f"{topic}.yaml"
    definition.write_text(
        _DEFINITION.format(brokers=connection.brokers, topic=topic, schema=SCHEMA, folder=folder)
    )
    penstock = Path(sys.executable).with_name("penstock")
    began = time.monotonic()
    process = psutil.Popen([penstock, "run", "--once", definition], stderr=subprocess.DEVNULL)
    curve: Curve = []
    while process.poll() is None:
        curve.append((time.monotonic() - began, tree_mib(process)))
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"draining {topic} failed with exit code {process.returncode}")
    return curve


def tree_mib(process: psutil.Process) -> float:
    """Return the resident memory of a process and everything it started.

    Forked workers share pages with their parent, so the share of each is counted (PSS).
    """
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 2**20


def _report(curves: dict[int, Curve]) -> None:
    (small, small_curve), (large, large_curve) = curves.items()
    peaks = {rows: max(mib for _, mib in curve) for rows, curve in curves.items()}
    for rows, peak in peaks.items():
        print(f"  peak memory for {rows:,} records: {peak:,.0f} MiB")
    print(f"  ratio {peaks[large] / peaks[small]:.2f}x (wanted: at most 1.10x)")
    for rows, curve in ((small, small_curve), (large, large_curve)):
        plt.plot(*zip(*curve, strict=True), label=f"{rows:,} records")
    plt.xlabel("seconds")
    plt.ylabel("memory of all processes, MiB")
    plt.ylim(bottom=0)
    plt.legend()
    OUT.mkdir(parents=True, exist_ok=True)
    plt.savefig(OUT / "memory.png", dpi=120)
    print(f"  plot: {OUT / 'memory.png'}")
