"""Masters of clusters: the address that the driver has for them; one that is not there."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from penstock.embedded.ports import free_ports
from penstock.engine.masters import own_address
from penstock.errors import ConfigError, TransientError
from penstock.pipeline.storage import is_local


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*,2]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("yarn", False),
        ("k8s://https://host:6443", False),
    ],
)
def test_only_local_masters_are_local(master: str, local: bool) -> None:
    assert is_local(master) is local


def test_the_driver_has_the_address_from_which_the_master_was_reached(monkeypatch: Any) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    (closed,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]

        assert own_address(f"spark://127.0.0.1:{closed},127.0.0.1:{port}") == "127.0.0.1"


def test_an_address_that_the_user_chose_stays(monkeypatch: Any) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.5")
    with socket.create_server(("127.0.0.1", 0)) as master:
        assert own_address(f"spark://127.0.0.1:{master.getsockname()[1]}") is None


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443"])
def test_other_clusters_choose_themselves(master: str) -> None:
    assert own_address(master) is None


def test_a_master_that_does_not_answer_is_named() -> None:
    (closed,) = free_ports(1)

    with pytest.raises(TransientError, match=f"spark://127.0.0.1:{closed} .*refused"):
        own_address(f"spark://127.0.0.1:{closed}")


def test_a_master_without_a_port_is_refused_with_the_form() -> None:
    with pytest.raises(ConfigError, match=r"'spark://host'; .* spark://host:7077"):
        own_address("spark://host")
