"""`penstock broker` starts, shows, logs and stops a broker, and cleans up after itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.embedded.conftest import eventually, read, send

from penstock.config import find_connection

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()", "broker"]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(own_home)
    yield own_home
    call("stop")


def test_a_detached_broker_is_found_used_and_stopped(home: Path) -> None:
    started = call("start", "--detach", "--port", "0", "--security", "sasl_plaintext")
    assert started.returncode == 0, started.stderr
    settings = home / "data" / "embedded.yaml"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    send(find_connection("embedded"), "t", [b"one"])
    shown = json.loads(call("status", "--json").stdout)
    assert (shown["running"], shown["healthy"], shown["protocol"]) == (True, True, "sasl_plaintext")
    assert "Kafka Server started" in call("logs", "-n", "400").stdout
    again = call("start", "--detach")
    assert again.returncode == 3
    assert "running already" in again.stderr
    assert call("stop").returncode == 0
    assert not settings.exists()
    assert call("status").returncode == 4


def test_a_detached_broker_has_its_records_when_started_again(home: Path) -> None:
    for word in ("one", "two"):
        assert call("start", "--detach", "--port", "0").returncode == 0
        send(find_connection("embedded"), "t", [word.encode()])
        last = read(find_connection("embedded"), "t", 2 if word == "two" else 1, group=word)
        assert call("stop").returncode == 0
    assert last == [b"one", b"two"]


def test_ctrl_c_stops_a_broker_in_the_foreground(home: Path) -> None:
    running = subprocess.Popen(
        [*PENSTOCK, "start", "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    settings = home / "data" / "embedded.yaml"
    assert eventually(settings.exists, within=60)
    send(find_connection("embedded"), "t", [b"one"])
    folder = Path(json.loads(call("status", "--json").stdout)["data_dir"])
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert "stopping" in said
    assert "Traceback" not in said
    assert not settings.exists()
    assert not folder.exists()


def test_a_state_file_of_a_dead_broker_is_no_hindrance(home: Path) -> None:
    assert call("start", "--detach", "--port", "0").returncode == 0
    shown = json.loads(call("status", "--json").stdout)
    for program in shown["programs"]:
        os.kill(program["pid"], signal.SIGKILL)
    assert eventually(lambda: call("status").returncode == 4)
    assert not (home / "data" / "embedded.yaml").exists()
    assert call("start", "--detach", "--port", "0").returncode == 0


def test_a_taken_port_is_one_message_and_exit_code_3(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        failed = call("start", "--port", str(port))
    assert failed.returncode == 3
    assert f"Port {port} on 127.0.0.1 is taken" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_two_nodes_are_refused_with_exit_code_2(home: Path) -> None:
    failed = call("start", "--nodes", "2")
    assert failed.returncode == 2
    assert "allowed: 1, 3" in failed.stderr


def test_logs_and_stop_without_a_broker_say_so(home: Path) -> None:
    assert call("logs").returncode == 4
    stopped = call("stop")
    assert stopped.returncode == 0
    assert "no broker is running" in stopped.stderr
