"""A process that does one piece of the growth bench and prints what it found as JSON.

`drain BROKERS FOLDER BATCH TOPIC...`: drains topics one after the other, the first to get warm.
`many BROKERS FOLDER TOPIC...`: starts a pipeline for each topic in one engine, and lets them idle.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import psutil

from bench.data import SCHEMA
from bench.memory import tree_mib
from penstock import Pipeline, Running, start
from penstock.engine import spark_session, stop_session
from penstock.engine.progress import Done

_IDLE = 20.0
_STARTERS = 4
_WARM_BATCH = 25_000


def _pipeline(brokers: str, folder: str, topic: str, batch: int = 1_000_000) -> Pipeline:
    return Pipeline(
        name=topic,
        group=f"{topic}-{Path(folder).name}",  # every process reads from the beginning
        connection={"bootstrap.servers": brokers},
        source={"kafka": {"topics": topic, "max_records_per_batch": batch}},
        decode={"json": {"schema": SCHEMA}},
        sink={"files": f"{folder}/{topic}"},
        state=f"{folder}/state",
    )


def drain(brokers: str, folder: str, batch: str, *topics: str) -> dict[str, Any]:
    """Return what each record of the last topic took from the end of its first batch on, in seconds.

    Start and first batch are left out: they cost the same for any backlog, and have a bench of their own.
    """
    ends: list[tuple[float, int]] = []
    *before, last = topics
    for topic, size in [*((topic, _WARM_BATCH) for topic in before), (last, int(batch))]:
        ends.clear()
        pipeline = _pipeline(brokers, folder, topic, size)
        with start(pipeline, once=True, on_batch=partial(_note, ends)) as running:
            running.wait()
    seconds = ends[-1][0] - ends[0][0]
    return {"each": seconds / sum(records for _, records in ends[1:])}


def _note(ends: list[tuple[float, int]], done: Done) -> None:
    ends.append((time.monotonic(), done.records))


def many(brokers: str, folder: str, *topics: str) -> dict[str, Any]:
    """Return when all had their first batch, and what they cost while nothing comes."""
    spark_session()
    began = time.monotonic()
    first = {topic: Event() for topic in topics}

    def begin(topic: str) -> Running:
        pipeline = _pipeline(brokers, folder, topic)
        return start(pipeline, on_batch=lambda _: first[topic].set())

    with ThreadPoolExecutor(_STARTERS) as starters:
        running = list(starters.map(begin, topics))
    for event in first.values():
        event.wait()
    found: dict[str, Any] = {"seconds": time.monotonic() - began}
    found |= _idle()
    with ThreadPoolExecutor(8) as stoppers:
        list(stoppers.map(Running.stop, running))
    return found


def _idle() -> dict[str, float]:
    me = psutil.Process()
    time.sleep(_IDLE / 4)  # the last commits and files
    before = _processor_seconds(me)
    time.sleep(_IDLE)
    cores = (_processor_seconds(me) - before) / _IDLE
    return {"idle_cores": cores, "mib": tree_mib(me)}


def _processor_seconds(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in [process, *process.children(recursive=True)]]
    return sum(each.user + each.system for each in times)


if __name__ == "__main__":
    kind, *given = sys.argv[1:]
    print(json.dumps({"drain": drain, "many": many}[kind](*given)), flush=True)
    stop_session()  # which keeps Java's class-data archive for the next process
    os._exit(0)
