"""Which free deployments a worker should claim, and which of its own it should give up.

Each worker decides for itself, from the same view; the database decides where two want the same. A run
is moved only when that evens out a large difference, as after a worker has joined.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.control.store.rows import RunRow, WorkerRow

SILENT = 15.0
"""A worker whose last heartbeat is this many seconds old does not count."""


@dataclass(frozen=True)
class Rules:
    """The numbers of the placement."""

    # This many claims at a time: what a worker cannot start soon is better started elsewhere.
    most_claims: int = 16
    most_moves: int = 2
    # After this many seconds any worker may claim a deployment, whatever its share is: the worker whose
    # share it would be may be unable to claim.
    patience: float = 10.0
    # A worker gives runs up if it has this many more than its share, as a part of it, and at least two.
    tolerance: float = 0.25
    # While a run that was claimed this many seconds ago or less starts, none moves that has begun.
    starting: float = 60.0


@dataclass(frozen=True)
class Shares:
    """How many runs each worker should have: by capacity, and by what is free of it."""

    counts: dict[str, int]
    even: dict[str, float]
    free: dict[str, float]


def shares(total: int, runs: Iterable[RunRow], workers: Sequence[WorkerRow], now: float) -> Shares:
    """Return the shares of these workers in `total` deployments."""
    counts = {worker.id: 0 for worker in workers}
    for run in runs:
        if run.worker in counts and run.is_held(now):
            counts[run.worker] += 1
    capacity = {worker.id: max(worker.capacity, 0.01) for worker in workers}
    # A worker that is busy with other things claims less; never nothing, it may be the only one.
    unused = {w.id: capacity[w.id] * (1 - min(max(w.load, 0.0), 0.9)) for w in workers}
    return Shares(counts, _parts(total, capacity), _parts(total, unused))


def _parts(total: int, weights: dict[str, float]) -> dict[str, float]:
    whole = sum(weights.values())
    return {id: total * weight / whole for id, weight in weights.items()}


def is_alive(worker: WorkerRow, now: float) -> bool:
    """Return whether a worker is heard of; a time in the future means that the clock was set back."""
    return abs(now - worker.seen) < SILENT


def to_claim(me: str, free: Sequence[RunRow], known: Shares, now: float, rules: Rules) -> list[str]:
    """Return the names of the free deployments that a worker should claim now."""
    room = max(0, math.ceil(known.free[me]) - known.counts[me])
    ordered = sorted(free, key=lambda run: _preference(run.deployment, me, known.counts))
    within, beyond = ordered[:room], ordered[room:]
    overdue = [run for run in beyond if abs(now - run.lease_until) > rules.patience]
    return [run.deployment for run in (*within, *overdue)][: rules.most_claims]


def _preference(name: str, me: str, workers: Iterable[str]) -> tuple[int, int]:
    """Return the place of a deployment among those that a worker may claim.

    Workers prefer different ones, so that two seldom try the same.
    """
    rank = sorted(workers, key=lambda worker: _hash(name, worker)).index(me)
    return rank, _hash(name, me)


def _hash(name: str, worker: str) -> int:
    digest = hashlib.blake2b(f"{name}\n{worker}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def to_move(me: str, mine: Sequence[RunRow], known: Shares, rules: Rules) -> list[str]:
    """Return the names of the runs that a worker should give up for one that has too few.

    `mine` are those of its runs that may move.
    """
    share = known.even[me]
    excess = known.counts[me] - math.ceil(share)
    needed = sum(
        max(0, math.floor(known.even[id]) - count) for id, count in known.counts.items() if id != me
    )
    if excess < max(2, share * rules.tolerance) or not needed:
        return []
    youngest = sorted(mine, key=lambda run: (-run.claimed, run.deployment))
    return [run.deployment for run in youngest[: min(excess, needed, rules.most_moves)]]
