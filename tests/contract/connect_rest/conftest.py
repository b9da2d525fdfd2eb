"""The same requests, sent to a worker of Connect and to Penstock: one run for all tests of a module."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.connect_rest.all_cases import CASES
from tests.contract.connect_rest.rest_case import Reply
from tests.contract.connect_rest.rest_session import RestSession
from tests.contract.connect_rest.setup_cases import TOPIC
from tests.contract.connect_rest.store_worker import StoreWorker
from tests.services.connect_worker import ConnectWorker
from tests.services.penstock_server import PenstockServer

from penstock.config import Connection
from penstock.control.store import ControlStore
from penstock.kafka import Admin

Replies = dict[str, Reply]
LINES = "one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def penstock(
    connection: Connection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PenstockServer]:
    """A server whose default connection is the shared broker."""
    folder, empty = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("empty")
    ControlStore.at(empty / "control.sqlite", empty / "keys").close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)
        patch.chdir(folder)
        with PenstockServer(folder, empty) as server:
            yield server


@pytest.fixture(scope="module")
def replies_of_penstock(
    penstock: PenstockServer, connection: Connection, lines: Path
) -> Iterator[Replies]:
    """The replies of Penstock."""
    with Admin(connection) as admin:
        admin.create_topic(TOPIC, 2)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    worker = StoreWorker(penstock.store, failing={"broken"})
    yield RestSession(penstock.url, str(lines), worker.work).replies(CASES.values())
    root.setLevel(level)


@pytest.fixture(scope="module")
def replies_of_connect(
    replies_of_penstock: Replies, connection: Connection, lines: Path
) -> Replies:
    """The replies of Connect, on the same broker, without what Penstock committed for its sinks."""
    with Admin(connection) as admin:
        if any(each.name == "connect-idle-out" for each in admin.groups()):
            admin.delete_group("connect-idle-out")
    with ConnectWorker(connection.brokers, "contract-workers") as worker:
        session = RestSession(worker.url, str(lines))
        return session.replies(CASES.values(), replies_of_penstock)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file that sources read."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in.txt").write_text(LINES)
    return folder
