"""A client that sends the same request over and over on some connections: prints seconds for each reply.

A process of its own, on sockets without a library: it must take little of the machine that it measures.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)")
BODY = b'{"id":1,"customer":"c-17","text":"' + b"x" * 960 + b'"}'


def is_whole(reply: bytes) -> bool:
    """Return whether a reply has come to its end."""
    head, end, body = reply.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


def main(port: int, path: str, connections: int, requests: int) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    chosen = selectors.DefaultSelector()
    sent: dict[socket.socket, float] = {}
    replies: dict[socket.socket, bytes] = {}
    took: list[float] = []
    refused, left = 0, requests
    began = time.perf_counter()
    for _ in range(connections):
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen.register(client, selectors.EVENT_READ)
        sent[client] = time.perf_counter()
        client.sendall(head + BODY)
        left -= 1
    while len(took) < requests:
        for key, _ in chosen.select():
            client = key.fileobj  # type: ignore[assignment]
            part = client.recv(65536)
            reply = replies[client] = replies.get(client, b"") + part
            if part and not is_whole(reply):
                continue
            del replies[client]
            refused += not reply.startswith(b"HTTP/1.1 2")
            took.append(time.perf_counter() - sent.pop(client))
            if left > 0:
                sent[client] = time.perf_counter()
                client.sendall(head + BODY)
                left -= 1
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "took": took, "refused": refused}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
