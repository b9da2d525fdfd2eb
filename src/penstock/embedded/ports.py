"""Free ports on the loopback interface, and the owner of a port that is in use."""

from __future__ import annotations

import random
import socket

import psutil

from penstock.errors import SetupError

HOST = "127.0.0.1"
# Below the range of ephemeral ports: a client that keeps connecting
# to a stopped broker's port must not get that port as its own.
FIRST, LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """Return this many different free ports."""
    ports: list[int] = []
    choose = random.Random()  # noqa: S311 - spreads tests that run at the same time, hides nothing
    for _ in range(1000):
        port = choose.randrange(FIRST, LAST)
        if port not in ports and is_free(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise SetupError(f"No {count} free ports were found between {FIRST} and {LAST} on {HOST}")


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def is_open(port: int) -> bool:
    """Return whether something listens on the port."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def need_free(port: int, option: str = "port") -> None:
    """Raise when the port is in use, with the name of its owner if it is visible."""
    if not is_free(port):
        raise SetupError(
            f"Port {port} on {HOST} is taken{_by_whom(port)}. Stop that program, or give another "
            f"{option} (0 finds a free one)."
        )


def _by_whom(port: int) -> str:
    try:
        listening = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return ""
    waiting = [each for each in listening if each.status == psutil.CONN_LISTEN]
    for pid in {each.pid for each in waiting if getattr(each.laddr, "port", None) == port} - {None}:
        try:
            return f" by {psutil.Process(pid).name()} (process {pid})"
        except psutil.Error:  # it ended, or belongs to another user
            continue
    return ""
