"""A broker keeps its data, survives the loss of a node, and ends with its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.integration.embedded.conftest import eventually, read, send

from penstock.embedded import Broker, Security
from penstock.embedded.tools import run_tool
from penstock.errors import SetupError

PARENT = """
import time
from penstock.embedded import Broker
with Broker() as broker:
    print(broker.children[0].pid, broker.data_dir, flush=True)
    time.sleep(600)
"""


def test_a_kept_broker_has_its_records_and_users_after_a_restart(tmp_path: Path) -> None:
    security = Security(protocol="sasl_plaintext", mechanism="SCRAM-SHA-512", users={"al": "b"})
    with Broker(data_dir=tmp_path / "data", security=security) as broker:
        send(broker.connection, "t", [b"one", b"two"])
        before = broker.bootstrap_servers
    with Broker(data_dir=tmp_path / "data", security=security) as broker:
        assert broker.bootstrap_servers == before
        assert read(broker.connection_as("al"), "t", 2) == [b"one", b"two"]


def test_a_temporary_broker_leaves_nothing() -> None:
    with Broker() as broker:
        folder, pid = broker.data_dir, broker.children[0].pid
        assert folder.is_dir()
    assert not folder.exists()
    assert not psutil.pid_exists(pid)


def test_three_nodes_go_on_without_one_and_take_it_back() -> None:
    with Broker(nodes=3) as broker:
        assert len(broker.bootstrap_servers.split(",")) == 3
        send(broker.connection, "t", [b"one"])
        broker.kill(2)
        send(broker.connection, "t", [b"two"])
        broker.restart(2)
        broker.kill(1)
        send(broker.connection, "t", [b"three"])
        assert read(broker.connection, "t", 3) == [b"one", b"two", b"three"]


def test_settings_of_kafka_can_be_given(tmp_path: Path) -> None:
    with Broker(properties={"num.partitions": 7}) as broker:
        send(broker.connection, "t", [b"one"])
        assert "PartitionCount: 7" in run_tool(
            "kafka-topics", broker.connection, ["--describe", "--topic", "t"]
        )


def test_kafkas_own_tool_shows_a_groups_lag(broker: Broker, unique: str) -> None:
    send(broker.connection, unique, [b"one", b"two", b"three"])
    read(broker.connection, unique, 3, group=unique)
    send(broker.connection, unique, [b"four"])
    answer = run_tool("kafka-consumer-groups", broker.connection, ["--describe", "--group", unique])
    line = next(line for line in answer.splitlines() if line.startswith(unique)).split()
    assert line[:6] == [unique, unique, "0", "3", "4", "1"]


def test_a_parent_that_is_killed_leaves_no_java_and_no_files(own_home: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as output:
        pid, folder = output.readline().split()
    assert psutil.Process(int(pid)).name() == "java"
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert eventually(lambda: not psutil.pid_exists(int(pid)))
    assert eventually(lambda: not Path(folder).exists())


def test_a_setting_that_kafka_refuses_is_reported_with_its_log_and_leaves_nothing() -> None:
    broker = Broker(properties={"num.io.threads": "many"})
    with pytest.raises(SetupError) as caught:
        broker.start()
    assert "num.io.threads" in str(caught.value)
    assert "broker-" in str(caught.value)
    assert broker.children == []


def test_a_port_in_use_is_reported_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port}.*process {os.getpid()}"):
            Broker(port=port).start()
