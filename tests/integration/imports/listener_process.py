"""A process that forks listeners to be killed, one for each line of its input: they start at once."""

from __future__ import annotations

import os
import signal
import sys

from penstock import Connection
from penstock.imports.http_listener import HttpListenerImport
from penstock.imports.http_listener.listener_thread import ListenerThread


def main() -> None:
    brokers, topic = sys.argv[1:]
    # Ended listeners leave nothing to be collected.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        if os.fork() == 0:
            _listen(brokers, topic)


def _listen(brokers: str, topic: str) -> None:
    options = HttpListenerImport(topic=topic, format="json_lines", timeout=5)
    listener = ListenerThread(options, Connection(brokers=brokers), lambda: False)
    listener.start()
    print(os.getpid(), listener.port, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
