"""An admin client is never freed in its own thread, which would end the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORGOTTEN = """
import gc, sys, time
from confluent_kafka.admin import AdminClient
from penstock.kafka.admin.pinning import pin

def ask():
    client = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    future = client.describe_cluster(request_timeout=0.5)
    if sys.argv[1] == "pinned":
        pin(client, [future])
    answered = []
    future.add_done_callback(lambda _: (gc.collect(), answered.append(True)))
    cycle = [client]
    cycle.append(cycle)
    return answered

gc.disable()
answered = ask()
until = time.monotonic() + 60
while not answered and time.monotonic() < until:
    time.sleep(0.05)
print("alive" if answered else "no reply")
"""


@pytest.mark.parametrize(("how", "printed"), [("pinned", "alive\n"), ("forgotten", "")])
def test_a_client_that_only_garbage_refers_to_survives_its_last_reply(
    how: str, printed: str
) -> None:
    command = [sys.executable, "-c", FORGOTTEN, how]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.stdout == printed, ended.stderr
