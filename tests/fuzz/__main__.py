"""Fuzz every decoder: `python -m tests.fuzz --inputs 1000000 [--format arrow] [--processes 2]`.

Prints a table, and ends with 1 where an input raised anything but the decoder's own error, or crashed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from tests.fuzz.decoders import NAMES
from tests.fuzz.mutations import BLOCK
from tests.fuzz.running import Outcome, run

_TASK = 20
_HEAD = "| decoder | inputs | decoded | refused | other errors | peak memory | slowest input |"


def main() -> int:
    """Run what the command line asks for."""
    given = _arguments()
    print(_HEAD, "|---|---|---|---|---|---|---|", sep="\n", flush=True)
    failed = [name for name in given.format or NAMES if _fuzzed(name, given)]
    return int(bool(failed))


def _fuzzed(name: str, given: argparse.Namespace) -> bool:
    total = Outcome()
    blocks = -(-given.inputs // BLOCK)
    starts = range(given.first, given.first + blocks, _TASK)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.processes, mp_context=context) as pool:
        tasks = [pool.submit(run, name, at, min(_TASK, given.first + blocks - at)) for at in starts]
        try:
            for task in as_completed(tasks):
                total.add(task.result())
        except BrokenProcessPool:
            total.others.append(f"{name}: a process crashed or hung; its traceback is above")
            total.failed += 1
    _show(name, total)
    return total.failed > 0


def _show(name: str, total: Outcome) -> None:
    row = [
        name, f"{total.inputs:,}", f"{total.decoded:,}", f"{total.refused:,}", f"{total.failed:,}",
        f"+{total.grown / 2**20:.0f} MB", f"{total.slowest * 1000:.0f} ms",
    ]  # fmt: skip
    print(f"| {' | '.join(row)} |", flush=True)
    for other in total.others:
        print(other, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="for each decoder")
    parser.add_argument("--format", action="append", choices=NAMES, help="only this decoder")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first block of 1,000 inputs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
