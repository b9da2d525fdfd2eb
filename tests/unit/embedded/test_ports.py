"""A port in use is reported with its owner."""

from __future__ import annotations

import os
import socket

import pytest

from penstock.embedded.ports import free_ports, is_free, is_open, need_free
from penstock.errors import SetupError


def test_free_ports_are_different_and_free() -> None:
    found = free_ports(9)
    assert len(set(found)) == 9
    assert all(is_free(port) for port in found)


def test_a_taken_port_is_named_with_its_holder_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert is_open(port)
        with pytest.raises(SetupError) as caught:
            need_free(port)
    assert f"Port {port}" in str(caught.value)
    assert f"process {os.getpid()}" in str(caught.value)
    assert "give another port" in str(caught.value)


def test_a_port_is_free_again_when_its_server_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not is_open(port)
    need_free(port)
