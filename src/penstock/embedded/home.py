"""The folder of a broker: the choices of its first start, so that it can be opened again."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass, field
from pathlib import Path

from penstock.embedded.ports import free_ports, is_free, need_free
from penstock.embedded.security import OWNER, Security, new_password
from penstock.errors import ConfigError, SetupError

STATE = "penstock-broker.json"


@dataclass
class NodePlace:
    """The identity of a node: its number, its storage's name, and its ports."""

    id: int
    directory_id: str
    client_port: int
    controller_port: int
    internal_port: int


@dataclass
class State:
    """The stored state of the folder. It contains passwords: the file is for its owner only."""

    cluster_id: str
    nodes: list[NodePlace]
    node_password: str = field(repr=False)
    users: dict[str, str] = field(default_factory=dict, repr=False)
    mechanism: str = ""
    formatted: bool = False


class Home:
    """A folder with the nodes' storage; a temporary one is removed when the broker stops."""

    def __init__(self, folder: Path | None) -> None:
        self.temporary = folder is None
        self.path = Path(tempfile.mkdtemp(prefix="penstock-broker-")) if folder is None else folder
        self.path = self.path.expanduser().absolute()
        self.state: State | None = None

    def open(self, nodes: int, port: int, security: Security) -> State:
        """Read the folder's state, or create a new one; changed ports are stored."""
        self._make()
        kept = self._read()
        if kept is None:
            self.state = _new_state(nodes, port, security)
        else:
            self.state = _reopened(kept, nodes, port, security, self.path)
        self.save()
        return self.state

    def folder_of(self, node: NodePlace) -> Path:
        """Return the folder of a node's storage and configuration."""
        return self.path / f"node-{node.id}"

    def save(self) -> None:
        """Write the state atomically."""
        assert self.state is not None  # noqa: S101
        write_private(self.path / STATE, json.dumps(asdict(self.state), indent=2))

    def remove(self) -> None:
        """Remove a temporary folder; keep any other."""
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise SetupError(
                f"The broker's folder {self.path} cannot be created: {error.strerror}; give a folder "
                "that is writable"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise SetupError(f"The broker's folder {self.path} is not writable; give one that is")

    def _read(self) -> State | None:
        file = self.path / STATE
        if not file.exists():
            if any(self.path.iterdir()):
                raise ConfigError(
                    f"{self.path} has files in it and is not the folder of a Penstock broker (no "
                    f"{STATE}); give an empty or a new folder"
                )
            return None
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            content["nodes"] = [NodePlace(**node) for node in content["nodes"]]
            return State(**content)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(
                f"{file} cannot be read ({error}); remove the folder {self.path} to start over"
            ) from error


def _new_state(nodes: int, port: int, security: Security) -> State:
    ports = free_ports(3 * nodes)
    places = [
        NodePlace(number, new_id(), ports.pop(), ports.pop(), ports.pop())
        for number in range(1, nodes + 1)
    ]
    state = State(new_id(), places, new_password())
    _give_client_ports(state, port)
    _give_users(state, security)
    return state


def _reopened(kept: State, nodes: int, port: int, security: Security, path: Path) -> State:
    if len(kept.nodes) != nodes:
        raise ConfigError(
            f"{path} was created with nodes={len(kept.nodes)}, but nodes={nodes} is requested; "
            f"give {len(kept.nodes)}, or another folder"
        )
    if security.scram and kept.formatted:
        _need_same_users(kept, security, path)
    else:
        _give_users(kept, security)
    _give_client_ports(kept, port)
    _move_taken_ports(kept)
    return kept


def _need_same_users(kept: State, security: Security, path: Path) -> None:
    # SCRAM users are inside the storage: others would be refused at login, without a reason.
    wanted = {name: secret.get_secret_value() for name, secret in security.users.items()}
    known = {name: kept.users.get(name) for name in wanted}
    if kept.mechanism != security.mechanism or known != wanted:
        raise ConfigError(
            f"{path} was created with mechanism {kept.mechanism or 'none'} and users "
            f"{sorted(kept.users)}; but {security.mechanism} and {sorted(wanted)} are requested, or "
            "a password differs. Give the same ones, or another folder"
        )


def _give_users(state: State, security: Security) -> None:
    if not security.sasl:
        return
    owner = state.users.get(OWNER) or new_password()
    given = {name: secret.get_secret_value() for name, secret in security.users.items()}
    state.users = {OWNER: owner, **given}
    state.mechanism = security.mechanism


def _give_client_ports(state: State, port: int) -> None:
    for number, node in enumerate(state.nodes):
        if port:
            need_free(port + number)
            node.client_port = port + number


def _move_taken_ports(state: State) -> None:
    for node in state.nodes:
        if not is_free(node.client_port):
            node.client_port = free_ports(1)[0]
        if not is_free(node.internal_port):
            node.internal_port = free_ports(1)[0]
        # The controllers' addresses are part of the cluster's storage: they cannot change.
        need_free(node.controller_port, "folder")


def new_id() -> str:
    """Return a new id in Kafka's form."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_private(path: Path, text: str) -> None:
    """Write a file atomically that only its owner may read."""
    staged = path.with_name(f".{path.name}.new")
    staged.unlink(missing_ok=True)
    staged.touch(mode=0o600)
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
