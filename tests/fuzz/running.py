"""Runs blocks of hostile inputs through a decoder, and counts what became of them."""

from __future__ import annotations

import faulthandler
import sys
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tests.fuzz.decoders import Decoder, make
from tests.fuzz.mutations import inputs

make_once = lru_cache(maxsize=None)(make)
_SHOWN = 3


@dataclass
class Outcome:
    """What became of some inputs."""

    inputs: int = 0
    decoded: int = 0
    refused: int = 0
    others: list[str] = field(default_factory=list)
    failed: int = 0
    slowest: float = 0.0
    grown: int = 0
    seconds: float = 0.0

    def add(self, other: Outcome) -> None:
        """Add the counts of another one."""
        for name in ("inputs", "decoded", "refused", "failed", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.others = (self.others + other.others)[:_SHOWN]
        self.slowest = max(self.slowest, other.slowest)
        self.grown = max(self.grown, other.grown)


def run(name: str, first: int, blocks: int, patience: float = 120.0) -> Outcome:
    """Decode the inputs of some blocks; a process that hangs on one for too long is ended."""
    decoder = make_once(name)
    outcome = Outcome()
    began, before = time.perf_counter(), _reset_peak()
    for block in range(first, first + blocks):
        faulthandler.dump_traceback_later(patience, exit=True)
        if not _run_at_once(name, block, decoder, outcome):
            _run_block(name, block, decoder, outcome)
    faulthandler.cancel_dump_traceback_later()
    outcome.grown = _memory("VmHWM") - before
    outcome.seconds = time.perf_counter() - began
    return outcome


def _run_at_once(name: str, block: int, decoder: Decoder, outcome: Outcome) -> bool:
    if decoder.decode_all is None:
        return False
    given = list(inputs(name, block, decoder.seeds, decoder.tokens))
    began = time.perf_counter()
    try:
        good = decoder.decode_all(given)
    except Exception:  # the block is looked at one by one
        return False
    outcome.decoded += good
    outcome.refused += len(given) - good
    outcome.inputs += len(given)
    outcome.slowest = max(outcome.slowest, (time.perf_counter() - began) / len(given))
    return True


def _run_block(name: str, block: int, decoder: Decoder, outcome: Outcome) -> None:
    decode, refuses, clock = decoder.decode, decoder.refuses, time.perf_counter
    for place, data in enumerate(inputs(name, block, decoder.seeds, decoder.tokens)):
        began = clock()
        try:
            decode(data)
            outcome.decoded += 1
        except refuses:
            outcome.refused += 1
        except Exception as error:  # this is what is looked for
            outcome.failed += 1
            if len(outcome.others) < _SHOWN:
                outcome.others.append(f"{name} {block}:{place} {error!r:.300} of {data.hex():.400}")
        outcome.slowest = max(outcome.slowest, clock() - began)
        outcome.inputs += 1


def _reset_peak() -> int:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmHWM")


def _memory(name: str) -> int:
    if sys.platform != "linux":
        return 0
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
