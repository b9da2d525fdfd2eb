"""Other systems fail under a running pipeline, which must wait for them and go on by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
from tests.faults.suite.driver import pipeline
from tests.faults.suite.load import Load
from tests.faults.suite.rounds import Driver, Outcome, behind, counted
from tests.faults.suite.targets import Setting
from tests.services.postgres import PASSWORD, Postgres
from typing_extensions import Self

from penstock import Broker, Connection, Delivery, start
from penstock.pipeline import SparkOptions
from penstock.testing import eventually

_EXACTLY_ONCE = Delivery.EXACTLY_ONCE
_PATIENCE = 240.0


def database_killed(
    connection: Connection, name: str, folder: Path, *, count: int = 2, **more: Any
) -> Outcome:
    """Kill PostgreSQL with -9 under the `database` sink, and start it again."""
    with Postgres(fsync="on") as server:

        def trouble() -> None:
            server.kill()
            server.start()

        setting = Setting(connection, name, folder, server.url, PASSWORD)
        return _survive("database", "database killed", setting, trouble, count=count, **more)


def broker_killed(name: str, folder: Path, *, count: int = 2, **more: Any) -> Outcome:
    """Kill a broker with -9 under the `files` sink, and start it again."""
    with Broker() as broker:

        def trouble() -> None:
            broker.kill()
            broker.restart()

        setting = Setting(broker.connection, name, folder)
        return _survive("files", "broker killed", setting, trouble, count=count, **more)


def _survive(
    target: str,
    what: str,
    setting: Setting,
    trouble: Callable[[], None],
    *,
    count: int,
    report: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Let one pipeline run in this process while another system is in trouble, `count` times."""
    outcome = Outcome(f"{target}; {what}", _EXACTLY_ONCE.value)
    given = pipeline(target, setting, _EXACTLY_ONCE.value).model_copy(
        update={"spark": SparkOptions()}
    )

    def until_batches(more: int) -> None:
        before = running._attempt.progress.batches
        eventually(lambda: running._attempt.progress.batches >= before + more, _PATIENCE)

    with Load(setting.connection, setting.name) as load, start(given) as running:
        for _ in range(count):
            until_batches(1)
            trouble()
            outcome.rounds += 1
            outcome.kills += 1
            report(f"{outcome.sink}: {outcome.kills} of {count}")
        until_batches(2)
        assert running.is_active
    with start(given, once=True) as running:
        assert running.wait(_PATIENCE), running.progress()
    return counted(target, setting, load.sent, outcome)


@dataclass
class Peak:
    """The most memory that a process and its children held together, in bytes."""

    pid: int
    bytes: int = 0

    def __enter__(self) -> Self:
        self._stop = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            held = 0
            try:
                top = psutil.Process(self.pid)
                for process in [top, *top.children(recursive=True)]:
                    held += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            self.bytes = max(self.bytes, held)


def database_away(
    connection: Connection, name: str, folder: Path, *, seconds: float, stopped: bool
) -> tuple[Outcome, int]:
    """Stop PostgreSQL for some time under a heavier load; return the outcome and the peak of memory.

    Without `stopped` the same run goes undisturbed, to compare with.
    """
    outcome = Outcome(
        f"database; {'database away' if stopped else 'undisturbed'} {seconds:.0f} s",
        _EXACTLY_ONCE.value,
    )
    with Postgres(fsync="on") as server:
        setting = Setting(connection, name, folder, server.url, PASSWORD)
        with Load(connection, name, burst=200) as load:
            driver = Driver("database", setting, _EXACTLY_ONCE)
            with Peak(driver.process.pid) as peak:
                driver.until_batches(5)
                outcome.rounds += 1
                if stopped:
                    server.stop()
                time.sleep(seconds)  # how long it is away is the point
                if stopped:
                    server.start()
                load.finish()
                eventually(lambda: behind(setting) == 0, timeout=300, every=1)
                assert driver.process.poll() is None, driver.last_output()
        driver.kill()
        return counted("database", setting, load.sent, outcome), peak.bytes
