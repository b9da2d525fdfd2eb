"""The process that hosts a whole world: every pipeline in a thread, a line of JSON for what happens.

It ends by itself when every pipeline has ended, and in order after SIGINT.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from threading import Event, Lock, Thread
from typing import Any

from tests.faults.suite.world import SPARK, Run, World

from penstock import Pipeline, Running, start
from penstock.engine import spark_session, stop_session
from penstock.errors import PenstockError, TransientError
from penstock.pipeline import SparkOptions

_saying = Lock()


def say(sink: str, what: str, **more: Any) -> None:
    with _saying:
        print(json.dumps({"sink": sink, "what": what, **more}), flush=True)


class Life:
    """One pipeline from its start to its end."""

    def __init__(self, sink: str, pipeline: Pipeline, run: Run, stop: Event) -> None:
        self._sink, self._pipeline, self._run, self._stop = sink, pipeline, run, stop

    def live(self) -> None:
        try:
            running = self._started()
            if running is not None:
                with running:
                    self._watch(running)
                say(self._sink, "ended")
        except Exception as error:  # whatever it is, the suite judges it
            say(self._sink, "failed", type=type(error).__name__, text=str(error)[:2000])

    def _started(self) -> Running | None:
        """Start it; a system that is away, or a lock that a stopped process holds, is waited for."""
        while not self._stop.is_set():
            try:
                return start(self._pipeline, once=self._run.once, token=self._run.token)
            except TransientError as error:
                say(self._sink, "waits", text=str(error)[:500])
                self._stop.wait(0.5)
        return None

    def _watch(self, running: Running) -> None:
        seen = 0
        while not self._stop.is_set() and not running.wait(0.1):
            if (batches := running._attempt.progress.batches) != seen:
                seen = batches
                say(self._sink, "batch", batches=batches)


def main(world_text: str, run_text: str) -> None:
    os.environ["FAULT_DRIVER"] = str(os.getpid())
    world, run = World.read(world_text), Run.read(run_text)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        spark_session(SparkOptions(**SPARK))
        threads = [
            Thread(target=Life(sink, pipeline, run, stop).live)
            for sink, state in run.states.items()
            for pipeline in [world.pipeline(sink, state, run.definition)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except PenstockError as error:
        say("", "failed", type=type(error).__name__, text=str(error))
        raise
    finally:
        stop_session()


if __name__ == "__main__":
    main(*sys.argv[1:])
