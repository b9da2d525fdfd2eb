"""The store in PostgreSQL keeps what `control_suite` promises, and survives what happens to servers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sa
from tests.contract import control_suite, log_suite, observed_suite, replay_suite
from tests.contract.apart import run_apart
from tests.contract.control_suite import deploy, done, end
from tests.integration.control.conftest import create
from tests.services.postgres import PASSWORD, Postgres

from penstock.control.liveness import clock
from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import ControlStore, Database
from penstock.control.store.events import next_number
from penstock.control.store.tables import RUNS
from penstock.control.worker_lease import HeldLeases
from penstock.errors import TransientError
from penstock.testing import eventually


class TestDeployments(control_suite.DeploymentsSuite): ...


class TestLeases(control_suite.LeasesSuite): ...


class TestCounters(control_suite.CountersSuite): ...


class TestObserved(observed_suite.ObservedSuite): ...


class TestSamples(control_suite.SamplesSuite): ...


class TestEvents(control_suite.EventsSuite): ...


class TestLogs(log_suite.LogsSuite): ...


class TestReplays(replay_suite.ReplaysSuite): ...


class TestAccess(control_suite.AccessSuite): ...


class TestProcesses(control_suite.ProcessesSuite): ...


def test_a_wrong_password_is_not_in_the_message(postgres: Postgres, keys: KeyFile) -> None:
    wrong = f"postgresql://penstock:hunter2@{postgres.host}:{postgres.port}/penstock"
    with pytest.raises(TransientError, match="cannot be reached") as refused:
        ControlStore.open(Database(wrong), keys)
    assert "hunter2" not in str(refused.value)
    assert "penstock:***@" in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_a_restart_of_the_server_loses_no_lease(keys: KeyFile) -> None:
    """Renewals go on through a restart and a crash; what was confirmed before is held until its end."""
    with Postgres() as server:
        store = ControlStore.open(Database(create(server, "own")), keys)
        deploy(store)
        held, sent = HeldLeases(), clock()
        lease = store.leases.claim("orders", "w")
        assert lease
        local = held.add("orders", lease.token, 300.0, sent)
        renewals: list[bool] = []
        ended = False

        def renew() -> None:
            while not ended:
                sent = clock()
                try:
                    lost = held.confirm(store.leases.renew("w"), sent)
                except TransientError:
                    renewals.append(False)
                else:
                    assert not lost
                    renewals.append(True)

        thread = Thread(target=renew)
        thread.start()
        for end in (server.stop, server.kill):
            eventually(lambda: renewals[-1:] == [True])
            end()
            eventually(lambda: renewals[-1:] == [False])
            assert local.is_held()
            server.start()
        eventually(lambda: renewals[-1:] == [True])
        ended = True
        thread.join()
        run = store.leases.get("orders")
        assert run
        assert (run.worker, run.token) == ("w", lease.token)
        assert store.counters.count("orders", lease.token, done(lease.token, 0))
        store.close()


def test_a_process_that_is_suspended_in_a_transaction_blocks_the_others_for_seconds_only(
    store: ControlStore, url: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def work() -> None:
        with Database(url).write() as session:
            next_number(session)
            begun.touch()
            os.kill(os.getpid(), signal.SIGSTOP)

    process = run_apart(work)
    try:
        eventually(begun.exists)

        def write() -> bool:
            try:
                return bool(store.events.add("a", "state", "x"))
            except TransientError:
                return False

        # PostgreSQL ends a session that is idle in a transaction after five seconds.
        assert eventually(write)
    finally:
        end(process)


def test_claims_that_wait_for_each_other_decide_by_the_time_after_the_wait(
    store: ControlStore, url: str, keys: KeyFile
) -> None:
    """The one who waited for the row's lock sees the lease of the other, and not the state before."""
    deploy(store)
    other = ControlStore.open(Database(url), keys)
    results: list[object] = []
    with store.database.write() as session:
        session.execute(
            RUNS.update().values(
                worker="w", lease_until=store.database.now + 60, token=RUNS.c.token + 1
            )
        )
        waiting = Thread(target=lambda: results.append(other.leases.claim("orders", "v")))
        waiting.start()
        eventually(lambda: _is_waiting(store), timeout=20)
    waiting.join()
    assert results == [None]
    other.close()


def _is_waiting(store: ControlStore) -> bool:
    query = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    with store.database.read() as session:
        return bool(session.execute(query).scalar_one())


def test_a_database_that_is_read_only_for_a_while_is_a_store_that_is_away(
    store: ControlStore,
) -> None:
    """As after a failover, or where a provider has found the disk full: sessions stay read-only then."""
    engine = store.database.engine
    with engine.connect() as first, engine.connect() as second:  # both go back to the pool
        for session in (first, second):
            session.execution_options(isolation_level="AUTOCOMMIT")
            session.execute(sa.text("SET default_transaction_read_only = on"))

    with pytest.raises(TransientError, match="is read-only"):
        store.events.add("a", "state", "text")
    assert store.events.add("a", "state", "text") > 0
