"""What a dead broker left behind is noticed and removed."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from penstock.embedded import running_broker
from penstock.embedded.process import Child
from penstock.embedded.running_broker import Program, Running
from penstock.errors import SetupError


def write_state(pid: int, started: float) -> Running:
    state = Running(
        bootstrap_servers="127.0.0.1:9092",
        protocol="plaintext",
        data_dir="/somewhere",
        temporary=False,
        detached=True,
        registry_url=None,
        since="2026-01-01T00:00:00+00:00",
        programs=[Program("node-1", pid, started, "/some.log")],
    )
    running_broker.state_path().write_text(json.dumps(asdict(state)))
    running_broker.connection_path().write_text("connections: {}\n")
    return state


def own_start() -> float:
    return psutil.Process().create_time()


def test_no_state_is_no_broker() -> None:
    assert running_broker.find() is None
    assert running_broker.stop() is None


def test_a_living_process_is_found() -> None:
    state = write_state(os.getpid(), own_start())
    assert running_broker.find() == state
    assert state.healthy


def test_a_dead_process_is_forgotten_with_its_connection() -> None:
    child = Child([sys.executable, "-c", ""], log=running_broker.state_path().with_suffix(".log"))
    child.wait(20)
    write_state(child.pid, own_start())
    assert running_broker.find() is None
    assert not running_broker.state_path().exists()
    assert not running_broker.connection_path().exists()


def test_a_number_that_went_to_another_process_is_not_the_broker() -> None:
    write_state(os.getpid(), own_start() - 3600)
    assert running_broker.find() is None
    assert not running_broker.state_path().exists()


def test_a_broken_state_file_is_removed() -> None:
    running_broker.state_path().write_text('{"half": ')
    assert running_broker.find() is None
    assert not running_broker.state_path().exists()


def test_a_second_broker_is_refused_while_one_runs() -> None:
    write_state(os.getpid(), own_start())
    with pytest.raises(SetupError, match=r"running already at 127\.0\.0\.1:9092.*broker stop"):
        running_broker.starting().__enter__()


def test_stop_ends_the_process_and_forgets_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with Child(command, log=tmp_path / "c.log") as child:
        write_state(child.guard_pid, psutil.Process(child.guard_pid).create_time())
        stopped = running_broker.stop()
        assert stopped is not None
        assert stopped.bootstrap_servers == "127.0.0.1:9092"
        assert not child.running
    assert not running_broker.state_path().exists()
