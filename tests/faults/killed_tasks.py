"""The task of an import in a process of its own, without Spark, that is killed with -9 while it works."""

from __future__ import annotations

from math import inf
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from penstock.imports.part_task import Errand, run
from penstock.kafka import Admin
from penstock.testing import eventually


def started(errand: Errand) -> BaseProcess:
    """Start the task."""
    process = get_context("spawn").Process(target=run, args=(errand, inf))
    process.start()
    return process


def kill_after(errand: Errand, admin: Admin, records: int) -> None:
    """Kill the task when it has sent about that many records, committed or not."""
    place = (errand.topic, 0)
    until = admin.latest([place])[place] + records
    process = started(errand)
    eventually(lambda: admin.latest([place])[place] >= until, every=0.001)
    assert process.is_alive()
    process.kill()
    process.join()
