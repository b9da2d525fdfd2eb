"""What the process prints when Spark's Java process is gone."""

from __future__ import annotations

import logging
import socket
import subprocess
from threading import Thread
from types import SimpleNamespace

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.engine import session
from penstock.engine.session import without_py4j


def test_py4j_does_not_log_that_java_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    # Its own logger is quiet anyhow; "Exception while sending command" goes to the root logger.
    without_py4j()
    without_py4j()
    with socket.create_server(("127.0.0.1", 0)) as dying, caplog.at_level(logging.DEBUG):
        Thread(target=_close_each, args=(dying,), daemon=True).start()
        client = ClientServer(
            java_parameters=JavaParameters(port=dying.getsockname()[1]),
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        with pytest.raises(Py4JError):
            client.jvm.System.currentTimeMillis()
        logging.error("of the application")
        dying.close()
        client.shutdown()
    assert [record.message for record in caplog.records] == ["of the application"]


def test_java_that_dies_during_a_call_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise ConnectionRefusedError

    process = subprocess.Popen(["sleep", "600"])
    jvm = SimpleNamespace(process=process, death=process.poll)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=refused))
    monkeypatch.setattr(session, "_jvm", jvm)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    monkeypatch.setattr(session, "_DYING", 0.01)
    with pytest.raises(ConnectionRefusedError):  # it lives: this is another reason
        session._was_stopped()
    monkeypatch.setattr(session, "_DYING", 60.0)
    process.kill()
    assert session._was_stopped()


def _close_each(server: socket.socket) -> None:
    """Take each connection and its first command, and answer nothing: as a process that dies."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(1024)
