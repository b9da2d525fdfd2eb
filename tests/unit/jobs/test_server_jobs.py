"""Jobs that workers of a server run: a real server, and definitions without code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.services.penstock_server import PenstockServer

from penstock import Job, Table, create_job
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired
from penstock.engine import Done
from penstock.errors import ConfigError
from penstock.pipeline import Mark

BROKERS = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PenstockServer]:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    folder, empty = tmp_path / "store", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    ControlStore.at(empty / "control.sqlite", empty / "keys").close()
    with PenstockServer(folder, empty) as started:
        yield started


def create(server: PenstockServer, **given: Any) -> Job:
    own: dict[str, Any] = {
        "table": Table("n bigint", {"files": "/lake/trades"}), "parser": json.loads,
        "name": "trades", "connection": BROKERS,
    }  # fmt: skip
    return create_job("t", server=server.url, **(own | given))


def test_a_job_is_deployed_and_followed(server: PenstockServer) -> None:
    secret = {"database": {"url": "postgresql://me@db/x", "password": "hunter-2", "table": "t"}}
    job = create(server, table=Table("n bigint", secret))
    row = server.store.deployments.find("trades")
    definition = server.store.secrets.opened("trades", row.spec)
    assert definition["decode"]["python"]["function"] == "json:loads"
    assert definition["sink"]["database"]["password"] == "hunter-2"
    assert "hunter-2" not in row.spec

    assert (job.state.value, job.runs_here) == ("STOPPED", False)
    lease = server.store.leases.claim("trades", "w")
    assert lease
    server.store.leases.report("trades", "w", lease.token, "RUNNING")
    done = Done(Mark(lease.token, 0, 0), records=10, rows=9, failed=1, seconds=1.0, error="oops")
    server.store.counters.count("trades", lease.token, done)
    stats = job.stats()
    assert (stats["state"], stats["processedMsgCount"], stats["lastErrMsg"]) == (
        "RUNNING", 9, "oops",
    )  # fmt: skip
    assert repr(job).startswith("<Job trades RUNNING: 9 processed, 1 failed")

    job.stop()
    assert server.store.deployments.find("trades").desired is Desired.STOPPED
    job.start()
    assert server.store.deployments.find("trades").desired is Desired.RUNNING
    job.cancel()
    assert server.store.deployments.find("trades").desired is Desired.DELETED


def test_the_same_call_changes_the_job_and_another_place_is_refused(server: PenstockServer) -> None:
    create(server)
    create(server)
    assert server.store.deployments.find("trades").generation == 1
    create(server, parser="json:JSONDecoder")
    assert server.store.deployments.find("trades").generation == 2
    with pytest.raises(ConfigError, match="'trades' that reads other topics or fills another"):
        create(server, table=Table("n bigint", {"files": "/elsewhere"}))


def test_what_workers_could_not_run_is_refused(server: PenstockServer) -> None:
    with pytest.raises(ConfigError, match="has a function without an import path, and a server"):
        create(server, parser=lambda value: {"n": int(value)})
    with pytest.raises(ConfigError, match="is in the memory of this process, and the job would"):
        create(server, table=Table("n bigint"))
    with pytest.raises(ConfigError, match="is in the memory of this process"):
        create(server, table="trades", parser="n bigint")
    assert server.store.deployments.all() == []
