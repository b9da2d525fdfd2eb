"""A broker's folder is opened as it was made, and a foreign one is left alone."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from penstock.embedded.broker import Broker
from penstock.embedded.home import STATE, Home
from penstock.embedded.security import Security
from penstock.errors import ConfigError, SetupError

PLAIN = Security()
SCRAM = Security(protocol="sasl_plaintext", mechanism="SCRAM-SHA-256", users={"alice": "a"})


def test_a_kept_folder_keeps_its_identity_and_its_ports(tmp_path: Path) -> None:
    first = Home(tmp_path / "data").open(3, 0, PLAIN)
    assert Home(tmp_path / "data").open(3, 0, PLAIN) == first
    assert len({node.directory_id for node in first.nodes}) == 3


def test_given_ports_are_used_in_a_row(tmp_path: Path) -> None:
    state = Home(tmp_path / "data").open(3, 31890, PLAIN)
    assert [node.client_port for node in state.nodes] == [31890, 31891, 31892]


def test_the_state_is_for_its_owner_only(tmp_path: Path) -> None:
    Home(tmp_path / "data").open(1, 0, SCRAM)
    assert stat.S_IMODE((tmp_path / "data" / STATE).stat().st_mode) == 0o600


def test_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    Home(tmp_path / "data").open(1, 0, PLAIN)
    with pytest.raises(ConfigError, match="was created with nodes=1, but nodes=3"):
        Home(tmp_path / "data").open(3, 0, PLAIN)


def test_other_users_than_the_storage_knows_are_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    state = home.open(1, 0, SCRAM)
    state.formatted = True
    home.save()
    other = SCRAM.model_copy(
        update={
            "users": Security.model_validate(
                {"protocol": "sasl_plaintext", "users": {"bob": "geheim"}}
            ).users
        }
    )
    with pytest.raises(ConfigError, match=r"users \['alice', 'penstock'\].*\['bob'\]") as caught:
        Home(tmp_path / "data").open(1, 0, other)
    assert "geheim" not in str(caught.value)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConfigError, match="is not the folder of a Penstock broker"):
        Home(tmp_path).open(1, 0, PLAIN)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"file/data cannot be created: Not a directory"):
        Home(tmp_path / "file" / "data").open(1, 0, PLAIN)


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} on 127.0.0.1 is taken"):
            Home(tmp_path / "data").open(1, port, PLAIN)


def test_a_temporary_folder_is_removed() -> None:
    home = Home(None)
    home.open(1, 0, PLAIN)
    home.remove()
    assert not home.path.exists()


@pytest.mark.parametrize("nodes", [0, 2, 4])
def test_only_one_or_three_nodes_are_allowed(nodes: int) -> None:
    with pytest.raises(ConfigError, match=f"nodes is {nodes}; a broker has 1 node or 3"):
        Broker(nodes=nodes)


def test_a_broker_that_is_not_started_says_so() -> None:
    with pytest.raises(SetupError, match="is not started"):
        _ = Broker().bootstrap_servers
