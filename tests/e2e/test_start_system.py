"""The real systems of the documentation's examples: started by a script, reached as it prints, ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import TransientError
from penstock.sinks.rabbitmq.rabbitmq_sink import RabbitMqSink

SCRIPT = Path(__file__).parents[2] / "scripts" / "start-system"


@pytest.mark.timeout(300)
def test_a_system_is_there_until_it_is_ended() -> None:
    with subprocess.Popen(
        [sys.executable, SCRIPT, "rabbitmq"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        options: dict[str, str] = {}
        for line in iter(process.stdout.readline, "Ctrl-C ends it\n"):
            assert line, "it ended before it was ready"
            name, _, value = line.strip().partition(": ")
            options[name] = value
        broker = RabbitMqSink(routing_key="q", **options).broker()
        with broker.connection("test") as connection:
            assert connection.is_open
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "ended\n"
    assert process.returncode == 0
    with pytest.raises(TransientError):
        broker.connection("test").open()


def test_a_name_that_is_not_one_is_answered_with_those_that_are() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "oracle"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "usage: scripts/start-system rabbitmq|artemis|opensearch|postgresql" in done.stderr
