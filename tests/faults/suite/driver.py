"""The process that is killed: one pipeline under load, until it is ended or, with --once, is done.

It prints the number of batches that are done, a line each, so that the suite knows where it is.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from tests.faults.suite.targets import TARGETS, Setting

from penstock import Pipeline, start


def pipeline(target: str, setting: Setting, delivery: str) -> Pipeline:
    return Pipeline(
        name=setting.name,
        connection=setting.connection,
        source={"kafka": {"topics": setting.name, "max_records_per_batch": 20_000}},
        decode={"json": {"schema": "n bigint not null", "metadata": ["partition", "offset"]}},
        sink=TARGETS[target].sink(setting),
        delivery=delivery,
        restart={"wait": "200ms", "longest": "2s"},
        state=str(setting.folder / "state"),
        spark={"memory": "512m"},
        **TARGETS[target].options,
    )


def main(target: str, setting: str, delivery: str, *flags: str) -> None:
    os.environ["FAULT_DRIVER"] = str(os.getpid())
    chosen = pipeline(target, Setting.read(setting), delivery)
    once = "--once" in flags
    with start(chosen, once=once) as running:
        seen: Any = None
        while not running.wait(0.05):
            progress = running.progress() if once else running._attempt.progress
            if seen != progress.batches:
                seen = progress.batches
                print(seen, flush=True)
            time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
