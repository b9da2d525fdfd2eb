"""A process that only listens, to be killed: it prints its port, and ends when its input does."""

from __future__ import annotations

import sys

from penstock import Connection
from penstock.imports.http_listener import HttpListenerImport


def main() -> None:
    brokers, topic = sys.argv[1:]
    options = HttpListenerImport(topic=topic, format="json_lines", timeout=5)
    listener = options.listener(Connection(brokers), lambda: False)
    listener.start()
    print(listener.port, flush=True)  # type: ignore[attr-defined]
    sys.stdin.read()
    listener.close()


if __name__ == "__main__":
    main()
