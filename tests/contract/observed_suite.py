"""What the store promises about the numbers that become metrics, for SQLite and PostgreSQL alike."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.contract.control_suite import deploy, lapse

from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, WorkerUsage
from penstock.control.store.tables import PARTITION_LAG, RESTARTS
from penstock.engine.restart_reason import RestartReason


class ObservedSuite:
    def test_the_lag_of_partitions_is_that_of_the_holder(self, store: ControlStore) -> None:
        for name in ("orders", "quotes"):
            deploy(store, name)
        store.leases.claim("orders", "w")
        store.leases.claim("quotes", "v")
        lag = {"a-b-0": 3, "t-10": 1}
        for _ in range(2):
            store.partition_lag.put("w", {"orders": lag, "quotes": lag, "unknown": lag})
        store.partition_lag.put("w", {})

        assert store.partition_lag.all() == {"orders": {("a-b", "0"): 3, ("t", "10"): 1}}

    def test_the_lag_of_many_partitions_is_bounded(self, store: ControlStore) -> None:
        deploy(store)
        store.leases.claim("orders", "w")
        store.partition_lag.put("w", {"orders": {f"t-{n}": 1 for n in range(2500)}})
        lag = store.partition_lag.all()["orders"]

        assert (len(lag), lag["t", "999"], lag["", "others"]) == (1001, 1, 1500)

    def test_an_old_lag_is_not_known(self, store: ControlStore) -> None:
        deploy(store)
        store.leases.claim("orders", "w")
        store.partition_lag.put("w", {"orders": {"t-0": 1}})
        with store.database.write() as session:
            session.execute(PARTITION_LAG.update().values(at=PARTITION_LAG.c.at - 121))
        assert store.partition_lag.all() == {}

    def test_restarts_are_added_by_reason(self, store: ControlStore) -> None:
        deploy(store)
        java, failed = RestartReason.JAVA_DIED, RestartReason.FAILED
        store.restarts.add({("orders", java): 2, ("orders", failed): 1, ("unknown", java): 1})
        store.restarts.add({("orders", java): 1})
        with store.database.write() as session:
            session.execute(
                RESTARTS.insert().values(deployment="orders", reason="of the future", count=1)
            )
        assert store.restarts.all() == {("orders", java): 3, ("orders", failed): 1}

    def test_two_workers_add_restarts_at_the_same_time(self, store: ControlStore) -> None:
        deploy(store)
        key = ("orders", RestartReason.FAILED)
        with ThreadPoolExecutor(4) as threads:
            [*threads.map(lambda _: store.restarts.add({key: 1}), range(20))]
        assert store.restarts.all() == {key: 20}

    def test_claims_count_takeovers(self, store: ControlStore) -> None:
        deploy(store)
        for _ in range(3):
            assert store.leases.claim("orders", "w")
            lapse(store)
        assert store.restarts.all() == {("orders", RestartReason.WORKER_LOST): 2}

    def test_nothing_of_it_outlives_the_deployment(self, store: ControlStore) -> None:
        deploy(store)
        for _ in range(2):
            store.leases.claim("orders", "w")
            lapse(store)
        store.partition_lag.put("w", {"orders": {"t-0": 1}})
        store.restarts.add({("orders", RestartReason.FAILED): 1})
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        lease = store.leases.claim("orders", "w")
        assert lease
        assert store.deployments.remove("orders", "w", lease.token)
        assert store.partition_lag.all() == {}
        deploy(store)
        assert store.restarts.all() == {}

    def test_workers_have_renewals_and_usage(self, store: ControlStore) -> None:
        store.workers.join("w", "host", 1)
        for name in ("orders", "quotes"):
            deploy(store, name)
            store.leases.claim(name, "w")
        for _ in range(3):
            store.leases.renew("w")
        store.workers.measured("w", WorkerUsage(10, 2.5, 2, 5, 8))
        (row,) = store.workers.all()
        assert (row.renewals, row.memory, row.cpu_seconds, row.queries) == (6, 10, 2.5, 2)
        assert (row.heap_used, row.heap_max) == (5, 8)
        store.workers.measured("w", WorkerUsage())
        assert store.workers.all()[0].heap_used is None
