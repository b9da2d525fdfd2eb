"""One broker and one Spark session for the whole run; a topic and a group of its own for each test."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.services.fixtures import (  # noqa: F401
    artemis,
    mariadb,
    opensearch,
    postgres,
    rabbitmq,
    s3,
)

from penstock.config import Connection
from penstock.embedded import Broker, SchemaRegistry

ROOT = Path(__file__).parents[1]
_numbers = itertools.count()

# In a run of everything, tests of these folders that fail are run once more: a machine may stop all of
# a processor's processes for a minute, longer than servers wait for each other.
SECOND_RUN = {"contract", "e2e", "faults", "integration"}

# How long an example takes says how busy the machine is.
settings.register_profile(
    "any-speed", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-speed")

# Processes that tests start live for seconds: optimized compilation would take a third of their CPU time,
# and never pay off. The Spark session of the run itself lives long enough. The space for compiled code is
# that of the other compiler: with the 48 MB of this one, a process that runs for minutes ends.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

# Of tests with long variants a run of everything takes a third, another one each day.
VARIANTS, TURN = "PENSTOCK_VARIANTS", "PENSTOCK_TURN"


@pytest.fixture(scope="session", autouse=True)
def _session_is_compiled_fully() -> Iterator[None]:
    from penstock.engine import session

    start_jvm = session.start_jvm

    def start(*given: Any, **named: Any) -> Any:
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("JAVA_TOOL_OPTIONS", raising=False)
            # Tasks find the classes of tests, wherever the test works that starts the session.
            environment.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
            return start_jvm(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "start_jvm", start)
        yield


# In the background of a shell Ctrl-C is ignored, and every process that a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Prepare a run in several processes, before they begin."""
    if session.config.getoption("numprocesses", None) and not hasattr(
        session.config, "workerinput"
    ):
        os.environ[TURN] = str(date.today().toordinal())
        # Without the archive of classes each start of Spark takes more than twice as much CPU time.
        command = [sys.executable, "-m", "penstock", "setup"]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode:
            raise pytest.UsageError(f"'penstock setup' failed: {done.stderr}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files with long tests first, so that the processes of a run end at about the same time."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in long, "unit" in item.path.parts))
    if hasattr(config, "workerinput"):
        _take_turns(config, items)
        for item in items:
            if not SECOND_RUN.isdisjoint(item.path.parts):
                item.add_marker(pytest.mark.flaky(reruns=1))


def _take_turns(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave variants out whose turn is another day."""
    if os.environ.get(VARIANTS) == "all":
        return
    turn = int(os.environ[TURN])
    members: dict[str, list[str]] = {}
    for item in items:
        group, member = _turn_of(item)
        if member not in members.setdefault(group, []):
            members[group].append(member)
    kept, left = [], []
    for item in items:
        group, member = _turn_of(item)
        of = min(len(members[group]), 3)
        (kept if members[group].index(member) % of == turn % of else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _turn_of(item: pytest.Item) -> tuple[str, str]:
    """Return the group of tests that take turns, and which of its members a test is or belongs to."""
    marker = item.get_closest_marker("by_turns")
    if marker is None:
        return item.nodeid, item.nodeid
    if marker.args:
        return marker.args[0], str(item.path)
    return item.nodeid.partition("[")[0], item.nodeid


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that a run of everything leaves variants out."""
    if config.getoption("numprocesses", None) and os.environ.get(VARIANTS) != "all":
        return f"of tests marked by_turns a third of the variants, another each day; {VARIANTS}=all: all"
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why tests failed that passed when they were run again: none of that is normal."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"failed, then run again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[SchemaRegistry]:
    """One real schema registry for the tests of a process."""
    with SchemaRegistry() as started:
        yield started


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    # Tests write records with times long ago, which Kafka would remove as soon as it looks.
    with Broker(properties={"log.retention.ms": -1}) as started:
        yield started


@pytest.fixture(scope="session")
def connection(broker: Broker) -> Connection:
    return broker.connection


@pytest.fixture
def unique() -> str:
    """A name that no other test of this run has."""
    return f"t{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def topic(unique: str) -> Callable[..., str]:
    """Makes names of topics."""
    return lambda suffix="topic": f"{unique}-{suffix}"


@pytest.fixture
def pipeline(
    connection: Connection, unique: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Makes pipelines with a name, a group and a state of their own, on the shared broker."""
    from penstock.pipeline import Pipeline

    state = tmp_path_factory.mktemp("state")

    def make(**options: Any) -> Pipeline:
        defaults = {"name": unique, "connection": connection, "state": str(state)}
        return Pipeline(**(defaults | options))

    return make


@pytest.fixture
def no_memory_tables() -> None:
    """Tables in memory belong to the process: examples and pages give theirs the same names."""
    from penstock.sinks.memory.table_store import _tables

    _tables.clear()


@pytest.fixture(autouse=True)
def _logging_ends_with_a_test() -> Iterator[None]:
    """A handler that a command sets would write to a stream that is closed after the test."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in list(root.handlers):
        if type(handler) is logging.StreamHandler and handler not in before:
            root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _end_spark() -> Iterator[None]:
    yield
    from penstock.engine import stop_session

    stop_session()
