"""What the store of the control plane promises, for SQLite and PostgreSQL alike.

A file of tests for one database defines the fixture `store` and a subclass of each class here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from tests.contract.apart import run_apart

from penstock.control.actions import Claim
from penstock.control.passwords import Cost
from penstock.control.reconcile import Local, reconcile
from penstock.control.roles import Role
from penstock.control.store import ControlStore, Database
from penstock.control.store import events as events_module
from penstock.control.store.counters import Counters
from penstock.control.store.deployments import ChangedError
from penstock.control.store.leases import Leases, Stalled
from penstock.control.store.login_limit import Limits, LoginLimit, TooManyLoginsError
from penstock.control.store.rows import FAILED, FREE, Desired, Kind
from penstock.control.store.samples import Sample
from penstock.control.store.tables import EVENTS, RUNS, SAMPLES, TOKENS, USERS
from penstock.control.store.users import Users
from penstock.engine import Done
from penstock.errors import ConfigError, FencedError
from penstock.pipeline import Mark
from penstock.testing import eventually

SPEC = "name: {}\nsource: {{kafka: t}}\nsink: discard\n"


def deploy(store: ControlStore, name: str = "orders", **more: Any) -> Any:
    return store.deployments.put(name, Kind.PIPELINE, SPEC.format(name), by="ann", **more)


def done(epoch: int, batch: int, **more: Any) -> Done:
    return Done(
        Mark(epoch, batch, 0), **({"records": 10, "rows": 9, "failed": 0, "seconds": 1.0} | more)
    )


def lapse(store: ControlStore, name: str = "orders") -> None:
    """Let a lease run out, as if its length had passed on the database's clock."""
    with store.database.write() as session:
        ended = RUNS.update().where(RUNS.c.deployment == name)
        session.execute(ended.values(lease_until=store.database.now - 1))


class DeploymentsSuite:
    def test_a_new_deployment_is_to_run_and_has_one_generation(self, store: ControlStore) -> None:
        row = deploy(store, labels={"team": "a"})

        assert (row.generation, row.desired, row.labels) == (1, Desired.RUNNING, {"team": "a"})
        assert [each.generation for each in store.deployments.history("orders")] == [1]
        assert [event.kind for event in store.events.after()] == ["created"]

    def test_the_same_spec_again_changes_nothing(self, store: ControlStore) -> None:
        assert deploy(store) == deploy(store)

    def test_every_generation_can_be_rolled_back_to(self, store: ControlStore) -> None:
        deploy(store)
        store.deployments.put("orders", Kind.PIPELINE, "second", by="bob")
        row = store.deployments.rollback("orders", 1, by="cid")

        assert (row.generation, row.spec, row.changed_by) == (3, SPEC.format("orders"), "cid")
        history = store.deployments.history("orders")
        assert [(each.generation, each.by) for each in history] == [
            (1, "ann"),
            (2, "bob"),
            (3, "cid"),
        ]
        with pytest.raises(ConfigError, match="has no generation 9; it has 1, 2, 3"):
            store.deployments.rollback("orders", 9, by="cid")

    def test_two_people_cannot_overwrite_each_other(self, store: ControlStore) -> None:
        read = deploy(store).revision
        store.deployments.set_desired("orders", Desired.PAUSED, by="bob", expected=read)

        with pytest.raises(
            ChangedError, match=r"was changed by bob \(revision 2\) since revision 1"
        ):
            store.deployments.put("orders", Kind.PIPELINE, "mine", by="ann", expected=read)
        with pytest.raises(ChangedError):
            deploy(store, expected=0)

    @pytest.mark.parametrize("pause", [Desired.PAUSED, Desired.STOPPED])
    @pytest.mark.parametrize("with_put", [False, True])
    def test_one_that_has_failed_runs_again_when_it_is_resumed(
        self, store: ControlStore, pause: Desired, *, with_put: bool
    ) -> None:
        deploy(store)
        store.workers.join("w", "host", 1)
        lease = store.leases.claim("orders", "w")
        assert lease
        store.leases.release("orders", "w", lease.token, FAILED, "no such topic")
        assert reconcile(store.view(), "w", {}) == []
        store.deployments.set_desired("orders", pause, by="ann")
        assert reconcile(store.view(), "w", {}) == []

        if with_put:
            deploy(store, desired=Desired.RUNNING)
        else:
            store.deployments.set_desired("orders", Desired.RUNNING, by="ann")

        assert reconcile(store.view(), "w", {}) == [Claim("orders")]
        assert [event.kind for event in store.events.after()] == ["created", pause.value, "running"]

    def test_a_pause_that_no_worker_has_seen_restarts_nothing(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        store.workers.join("w", "host", 1)
        store.deployments.set_desired("orders", Desired.PAUSED, by="ann")
        store.deployments.set_desired("orders", Desired.RUNNING, by="ann")
        local = {"orders": Local(lease.token, lease.generation, lease.round)}

        assert reconcile(store.view(), "w", local) == []

    def test_a_revision_is_never_used_again_after_a_deletion(self, store: ControlStore) -> None:
        first = deploy(store).revision
        self.delete(store)
        with pytest.raises(ChangedError, match="by a deletion since revision"):
            deploy(store, expected=first)
        assert deploy(store, expected=0).revision > first

    @staticmethod
    def delete(store: ControlStore) -> None:
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        lease = store.leases.claim("orders", "w")
        assert lease
        assert store.deployments.remove("orders", "w", lease.token)

    def test_a_deleted_one_leaves_nothing_but_its_token(self, store: ControlStore) -> None:
        deploy(store)
        first = store.leases.claim("orders", "w")
        assert first
        store.counters.count("orders", first.token, done(first.token, 0))
        store.samples.add({"orders": Sample(records=1)})
        store.leases.release("orders", "w", first.token, "STOPPED")
        self.delete(store)

        assert store.deployments.get("orders") is None
        assert store.deployments.history("orders") == []
        assert store.events.after() == []
        assert store.counters.all() == []
        assert store.samples.of("orders", 10) == []
        deploy(store)
        again = store.leases.claim("orders", "w")
        assert again
        assert again.token > first.token + 1
        assert store.counters.get("orders").records == 0

    def test_only_the_holder_removes_and_only_what_is_to_be_deleted(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        assert not store.deployments.remove("orders", "w", lease.token)
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        assert not store.deployments.remove("orders", "other", lease.token)
        assert not store.deployments.remove("orders", "w", lease.token - 1)
        assert store.deployments.remove("orders", "w", lease.token)

    def test_nothing_can_be_asked_of_one_that_is_being_deleted(self, store: ControlStore) -> None:
        deploy(store)
        store.deployments.set_desired("orders", Desired.DELETED, by="ann")
        for ask in (
            lambda: deploy(store),
            lambda: store.deployments.set_desired("orders", Desired.RUNNING, by="ann"),
            lambda: store.deployments.restart("orders", by="ann"),
        ):
            with pytest.raises(ConfigError, match="'orders' is being deleted; wait"):
                ask()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"name": ""}, "is not a name of a deployment"),
            ({"name": "a/b"}, "is not a name of a deployment"),
            ({"name": ".."}, "is not a name of a deployment"),
            ({"name": " a"}, "is not a name of a deployment"),
            ({"name": "a\nb"}, "is not a name of a deployment"),
            ({"name": "a\x00"}, "is not a name of a deployment"),
            ({"name": "a\ud800"}, "is not a name of a deployment"),
            ({"name": "x" * 201}, "is not a name of a deployment"),
            ({"spec": "x" * 1_000_001}, "1000001 characters; allowed: 1000000"),
            ({"spec": "a\x00"}, "no NUL"),
            ({"labels": {"team": ""}}, "given the label 'team': ''"),
            ({"labels": {"": "x"}}, "given the label"),
            ({"labels": {"a": "b c"}}, "given the label"),
        ],
    )
    def test_what_cannot_be_deployed(
        self, store: ControlStore, change: dict[str, Any], message: str
    ) -> None:
        given: dict[str, Any] = {"name": "a", "spec": "x", "labels": {}} | change
        with pytest.raises(ConfigError, match=message):
            store.deployments.put(
                given["name"], Kind.PIPELINE, given["spec"], by="ann", labels=given["labels"]
            )

    def test_a_name_has_one_kind(self, store: ControlStore) -> None:
        deploy(store)
        with pytest.raises(ConfigError, match="'orders' is a pipeline, and a flow was given"):
            store.deployments.put("orders", Kind.FLOW, "x", by="ann")

    def test_an_unknown_name_gets_a_hint(self, store: ControlStore) -> None:
        deploy(store)
        with pytest.raises(ConfigError, match="no deployment 'order'; did you mean 'orders'"):
            store.deployments.find("order")

    def test_many_at_once_get_different_revisions(self, store: ControlStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda n: deploy(store, f"d{n}"), range(24)))
        assert len({row.revision for row in rows}) == 24


class LeasesSuite:
    def test_one_of_many_wins_and_the_token_increases(self, store: ControlStore) -> None:
        deploy(store)
        tokens = []
        for _ in range(4):
            with ThreadPoolExecutor(8) as pool:
                given = list(pool.map(lambda n: store.leases.claim("orders", f"w{n}"), range(8)))
            (won,) = [each for each in given if each]
            tokens.append(won.token)
            lapse(store)
        assert tokens == list(range(tokens[0], tokens[0] + 4))

    def test_tokens_start_after_the_epochs_that_clocks_have_numbered(
        self, store: ControlStore
    ) -> None:
        now = store.database.time()
        deploy(store)
        deploy(store, "old", above=9_000_000_000)
        first, second = store.leases.claim("orders", "w"), store.leases.claim("old", "w")
        assert first
        assert second
        assert first.token > int(now)
        assert second.token == 9_000_000_001

    def test_a_token_advances_over_an_epoch_from_elsewhere(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        assert store.leases.advance("orders", "w", lease.token) == lease.token + 1
        assert store.leases.advance("orders", "w", lease.token) is None
        assert store.leases.advance("orders", "w", lease.token + 1, above=10**12) == 10**12 + 1
        lapse(store)
        again = store.leases.claim("orders", "v")
        assert again
        assert again.token == 10**12 + 2

    def test_a_valid_lease_is_not_claimed(self, store: ControlStore) -> None:
        deploy(store)
        assert store.leases.claim("orders", "w")
        assert store.leases.claim("orders", "v") is None
        assert store.leases.claim("orders", "w") is None

    def test_a_lease_has_the_length_of_its_holder(self, store: ControlStore) -> None:
        deploy(store)
        assert Leases(store.database, 60.0).claim("orders", "w")
        run = store.leases.get("orders")
        assert run
        assert run.lease_length == 60
        store.leases.renew("w")
        run = store.leases.get("orders")
        assert run
        assert run.lease_length == store.leases.length

    @pytest.mark.parametrize("desired", [Desired.PAUSED, Desired.STOPPED])
    def test_what_is_not_to_run_is_not_claimed(self, store: ControlStore, desired: Desired) -> None:
        deploy(store, desired=desired)
        assert store.leases.claim("orders", "w") is None
        assert store.leases.claim("nothing", "w") is None

    def test_one_statement_renews_all_leases_of_a_worker(
        self, store: ControlStore, statements: Callable[[], list[str]]
    ) -> None:
        for n in range(5):
            deploy(store, f"d{n}")
        held = [store.leases.claim(f"d{n}", "w") for n in range(4)]
        store.leases.claim("d4", "v")
        store.workers.join("w", "host", 1)
        statements()

        assert store.leases.renew("w", 0.5) == {
            each.deployment: each.token for each in held if each
        }
        sent = [text for text in statements() if text.startswith("UPDATE")]
        assert [text.split()[1] for text in sent] == ["penstock_runs", "penstock_workers"]
        (worker,) = store.workers.all()
        assert worker.load == 0.5

    def test_a_claim_is_one_statement(
        self, store: ControlStore, statements: Callable[[], list[str]]
    ) -> None:
        deploy(store)
        statements()
        store.leases.claim("orders", "w")
        assert [text.split()[0] for text in statements() if not text.startswith("BEGIN")] == [
            "UPDATE"
        ]

    def test_a_lease_that_ran_out_can_be_renewed_until_another_worker_has_it(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        lapse(store)
        assert store.leases.renew("w") == {"orders": lease.token}
        assert store.leases.claim("orders", "v") is None
        lapse(store)
        assert store.leases.claim("orders", "v")
        assert store.leases.renew("w") == {}

    def test_the_holder_before_can_do_nothing_any_more(self, store: ControlStore) -> None:
        deploy(store)
        old = store.leases.claim("orders", "w")
        assert old
        lapse(store)
        new = store.leases.claim("orders", "w")  # the same worker: only the token differs
        assert new
        assert not store.leases.report("orders", "w", old.token, "RUNNING")
        assert not store.leases.release("orders", "w", old.token, "STOPPED")
        with pytest.raises(FencedError, match="another worker has the lease of 'orders'"):
            store.counters.count("orders", old.token, done(old.token, 5))
        assert store.leases.advance("orders", "w", old.token) is None
        run = store.leases.get("orders")
        assert run
        assert (run.worker, run.token, run.state) == ("w", new.token, "STARTING")

    def test_a_released_lease_is_free_at_once(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        assert store.leases.release("orders", "w", lease.token, FAILED, "password=hunter2 is wrong")
        run = store.leases.get("orders")
        assert run
        assert (run.worker, run.state, run.error) == (FREE, FAILED, "password=******** is wrong")
        assert store.leases.claim("orders", "v")

    def test_leases_of_a_process_that_ended_can_be_ended(self, store: ControlStore) -> None:
        deploy(store)
        deploy(store, "more")
        for name in ("orders", "more"):
            store.leases.claim(name, "w")
        assert store.leases.expire("w") == ["more", "orders"]
        assert store.leases.claim("orders", "v")

    def test_lapses_are_counted_until_a_batch(self, store: ControlStore) -> None:
        deploy(store)
        for lapses in (0, 1, 2):
            lease = store.leases.claim("orders", "w")
            run = store.leases.get("orders")
            assert lease
            assert run
            assert run.lapses == lapses
            lapse(store)
        store.leases.report("orders", "w", lease.token, "RUNNING", restarts=4)
        run = store.leases.get("orders")
        assert run
        assert (run.lapses, run.restarts) == (0, 4)

    def test_a_stalled_lease_can_be_claimed_after_the_clock_was_set_back(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        with store.database.write() as session:
            session.execute(RUNS.update().values(lease_until=store.database.now + 86_400))
        seen = Stalled(lease.token, 0)
        assert store.leases.claim("orders", "v") is None
        store.leases.renew("w")
        assert store.leases.claim("orders", "v", seen) is None
        assert store.leases.claim("orders", "v", Stalled(lease.token, 1))

    def test_a_view_has_everything_in_a_few_statements(
        self, store: ControlStore, statements: Callable[[], list[str]]
    ) -> None:
        for n in range(20):
            deploy(store, f"d{n}")
        store.workers.join("w", "host", 1, capacity=2)
        statements()
        view = store.view()
        assert len([text for text in statements() if text.startswith("SELECT")]) == 3
        assert (len(view.wanted), len(view.runs), list(view.workers)) == (20, 20, ["w"])

    def test_workers_join_drain_and_leave(self, store: ControlStore) -> None:
        store.workers.join("w", "host", 1, capacity=2)
        store.workers.join("v", "host", 2)
        assert store.workers.drain("w")
        assert not store.workers.drain("another")
        assert {row.id: row.draining for row in store.workers.all()} == {"w": True, "v": False}
        store.workers.leave("w")
        assert store.workers.forget_silent(60) == []
        assert store.workers.forget_silent(-1) == ["v"]


class CountersSuite:
    def test_a_batch_that_comes_again_is_counted_once(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        marks = ((1, 0), (1, 1), (1, 1), (1, 0), (2, 0), (1, 5))
        given = [store.counters.count("orders", lease.token, done(*mark)) for mark in marks]

        assert given == [True, True, False, False, True, False]
        row = store.counters.get("orders")
        assert (row.batches, row.records, row.rows, row.epoch, row.batch) == (3, 30, 27, 2, 0)

    def test_failures_leave_their_error(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        failed = done(1, 0, failed=1, lost=2, error="token=abc\x00 \udce9")
        store.counters.count("orders", lease.token, failed)
        store.counters.count("orders", lease.token, done(1, 1))
        row = store.counters.get("orders")
        assert (row.failed, row.lost, row.last_error) == (1, 2, "token=******** \\udce9")
        assert row.rate == 9

    def test_counters_of_a_taken_over_deployment_go_on(self, store: ControlStore) -> None:
        deploy(store)
        for _ in range(3):
            lease = store.leases.claim("orders", "w")
            assert lease
            store.counters.count("orders", lease.token, done(lease.token, 0))
            lapse(store)
        assert store.counters.get("orders").batches == 3

    def test_durations_are_counted_once_with_their_batch(self, store: ControlStore) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        took = [0.05, 0.1, 0.1001, 7.0, 300.0, 1e6]
        for batch, seconds in enumerate(took):
            for _ in range(2):
                store.counters.count("orders", lease.token, done(1, batch, seconds=seconds))
        with pytest.raises(FencedError):
            store.counters.count("orders", lease.token - 1, done(1, 99, seconds=1.0))

        durations = store.counters.durations()["orders"]
        assert durations.cumulative() == [2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6]
        assert durations.seconds == pytest.approx(sum(took))


class SamplesSuite:
    def test_a_sample_is_in_one_point_of_each_series(self, store: ControlStore) -> None:
        store.samples.add({"a": Sample(records=5, lag=9), "b": Sample(records=1)})
        store.samples.add({"a": Sample(records=7, lag=3)})
        now = store.database.time()
        for resolution in (10, 60):
            points = store.samples.of("a", resolution)
            assert points[-1].sample == Sample(records=7, lag=3)
            assert max(point.most_lag for point in points) == 9
            assert all(now - 60 <= point.at <= now for point in points)
        assert store.samples.of("a", 10, since=now + 100) == []

    def test_the_series_are_bounded_whatever_the_clock_does(self, store: ControlStore) -> None:
        now = int(store.database.time())
        ages = [-10 * 86_400, 30, 3500, 3700, 86_000, 87_000]
        rows = [
            {"deployment": "a", "resolution": resolution, "at": now - age}
            for resolution in (10, 60)
            for age in ages
        ]
        with store.database.write() as session:
            session.execute(SAMPLES.insert(), rows)
        store.samples.add({"b": Sample()})
        kept = {
            resolution: [now - point.at for point in store.samples.of("a", resolution)]
            for resolution in (10, 60)
        }
        assert kept == {10: [3500, 30], 60: [86_000, 3700, 3500, 30]}

    def test_samples_of_many_deployments_at_once(self, store: ControlStore) -> None:
        store.samples.add({f"d{n}": Sample(records=n) for n in range(1500)})
        assert store.samples.of("d1499", 60)[0].sample.records == 1499


class EventsSuite:
    def test_the_newest_events_of_each_are_stored(
        self, store: ControlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events_module, "MOST_EVENTS", 3)
        for number in range(5):
            store.events.add("a", "state", f"event {number}")
        store.events.add("b", "state", "password=hunter2\x00 \udce9")

        assert [event.text for event in store.events.after(deployment="a")] == [
            "event 2", "event 3", "event 4",
        ]  # fmt: skip
        first = store.events.after()[0].number
        assert store.events.after(first, most=1)[0].text == "event 3"
        assert store.events.after(deployment="b")[0].text == "password=******** \\udce9"

    def test_a_reader_that_follows_misses_nothing(self, store: ControlStore) -> None:
        """Numbers become visible in their order, however many write at once."""
        seen: list[int] = []
        with ThreadPoolExecutor(9) as pool:
            writers = [
                pool.submit(
                    lambda n=n: [store.events.add(f"d{n}", "state", "x") for _ in range(12)]
                )
                for n in range(8)
            ]
            while not all(writer.done() for writer in writers):
                seen += [event.number for event in store.events.after(seen[-1] if seen else 0)]
            seen += [event.number for event in store.events.after(seen[-1] if seen else 0)]
            written = [number for writer in writers for number in writer.result()]
        assert seen == sorted(written)

    def test_numbers_are_not_used_again(self, store: ControlStore) -> None:
        last = store.events.add("a", "state", "x")
        with store.database.write() as session:
            session.execute(EVENTS.delete())
        assert store.events.add("a", "state", "y") > last

    def test_the_audit_log_is_read_backwards_and_has_no_secrets(self, store: ControlStore) -> None:
        store.audit.add("ann", "put", "orders", spec={"password": "hunter2"}, generation=1)
        store.audit.add("bob", "delete", "other")
        newest, first = store.audit.before()
        assert (newest.who, first.action, first.target) == ("bob", "put", "orders")
        assert first.detail == {"generation": 1, "spec": {"password": "********"}}
        assert store.audit.before(newest.number) == [first]
        assert store.audit.before(target="other") == [newest]


class AccessSuite:
    @pytest.fixture
    def users(self, store: ControlStore) -> Users:
        return Users(store.database, Cost(n=16, p=1))

    def test_a_password_is_checked_and_not_stored(self, store: ControlStore, users: Users) -> None:
        users.add("ann", "correct horse", ["viewer", "operator:team=a"])
        access = users.log_in("ann", "correct horse")
        assert access
        assert access.allows(Role.OPERATOR, {"team": "a"})
        assert not access.allows(Role.OPERATOR, {"team": "b"})
        assert not access.allows(Role.OPERATOR)
        for name, password in (("ann", "wrong horse"), ("bob", "correct horse"), ("ann", "")):
            assert users.log_in(name, password) is None
        with store.database.read() as session:
            assert "correct" not in str(session.execute(sa.select(USERS)).all())

    def test_a_hash_of_another_cost_is_replaced_at_the_next_login(
        self, store: ControlStore, users: Users
    ) -> None:
        users.add("ann", "correct horse", ["viewer"])
        assert Users(store.database, Cost(n=32, p=1)).log_in("ann", "correct horse")
        with store.database.read() as session:
            stored = session.execute(sa.select(USERS.c.password)).scalar_one()
        assert stored.startswith("scrypt$32$8$1$")
        assert users.log_in("ann", "correct horse")

    def test_a_disabled_user_and_all_tokens_are_refused(
        self, store: ControlStore, users: Users
    ) -> None:
        users.add("ann", "correct horse", ["admin"])
        token, _ = store.tokens.create("ann", "ci", grants=["admin"], seconds=None)
        users.disable("ann")
        assert users.log_in("ann", "correct horse") is None
        assert store.tokens.check(token) is None

    def test_a_token_is_shown_once_and_limited(self, store: ControlStore, users: Users) -> None:
        users.add("ann", "correct horse", ["operator"])
        token, row = store.tokens.create("ann", "ci", grants=["admin:team=a"], seconds=60)
        access = store.tokens.check(token)
        assert access
        assert access.allows(Role.OPERATOR, {"team": "a"})
        assert not access.allows(Role.ADMIN, {"team": "a"})  # the user is no admin
        assert not access.allows(Role.VIEWER, {"team": "b"})  # the token is for team a
        with store.database.read() as session:
            assert token not in str(session.execute(sa.select(TOKENS)).all())
        users.set_grants("ann", [])
        limited = store.tokens.check(token)
        assert limited
        assert not limited.allows(Role.VIEWER, {"team": "a"})
        assert store.tokens.revoke(row.id)
        assert store.tokens.check(token) is None

    def test_a_token_expires_by_the_databases_clock(
        self, store: ControlStore, users: Users
    ) -> None:
        users.add("ann", "correct horse", ["viewer"])
        token, _ = store.tokens.create("ann", "ci", grants=["viewer"], seconds=60)
        with store.database.write() as session:
            session.execute(TOKENS.update().values(expires=store.database.now - 1))
        assert store.tokens.check(token) is None
        assert store.tokens.check("") is None
        assert store.tokens.check("pst_\udcff") is None

    def test_a_new_password_ends_all_tokens(self, store: ControlStore, users: Users) -> None:
        users.add("ann", "correct horse", ["viewer"])
        token, _ = store.tokens.create("ann", "ci", grants=["viewer"], seconds=None)
        users.set_password("ann", "battery staple")
        assert store.tokens.check(token) is None
        assert users.log_in("ann", "battery staple")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (("ann", "short", ["viewer"]), "a password has 8 to 1000 characters; 5 were given"),
            (("a:b", "long enough", ["viewer"]), "is not a name of a user"),
            (("", "long enough", ["viewer"]), "is not a name of a user"),
            (("a\n", "long enough", ["viewer"]), "is not a name of a user"),
            (("ann", "long enough", ["vewer"]), "'vewer' is not a role; did you mean 'viewer'"),
            (("ann", "long enough", ["viewer:team"]), "is not a grant: write a role"),
            (("bob", "long enough", ["viewer"]), "the user 'bob' exists already"),
        ],
    )
    def test_wrong_users(self, users: Users, given: tuple[Any, ...], message: str) -> None:
        users.add("bob", "long enough", ["viewer"])
        with pytest.raises(ConfigError, match=message):
            users.add(*given)

    def test_unknown_users_and_wrong_times(self, store: ControlStore, users: Users) -> None:
        with pytest.raises(ConfigError, match="there is no user 'zoe'"):
            store.tokens.create("zoe", "x", grants=["viewer"], seconds=None)
        with pytest.raises(ConfigError, match="there is no user 'zoe'"):
            users.set_grants("zoe", ["viewer"])
        with pytest.raises(ConfigError, match="cannot expire after 0 seconds"):
            store.tokens.create("zoe", "x", grants=["viewer"], seconds=0)

    def test_failed_logins_wait_longer_and_longer(self, store: ControlStore) -> None:
        limit = LoginLimit(store.database, Limits(of_user=3, wait=100))
        for _ in range(3):
            limit.begin("ann", "10.0.0.1")
        with pytest.raises(TooManyLoginsError) as refused:
            limit.begin("ann", "10.0.0.1")
        assert 90 < refused.value.retry_after <= 100
        limit.begin("ann", "10.0.0.2")  # another address is not locked out
        limit.begin("bob", "10.0.0.1")
        limit.succeeded("ann", "10.0.0.1")
        limit.begin("ann", "10.0.0.1")

    def test_an_address_that_tries_many_names_is_limited(self, store: ControlStore) -> None:
        limit = LoginLimit(store.database, Limits(of_address=4, wait=100))
        for number in range(4):
            limit.begin(f"user{number}", "10.0.0.1")
        with pytest.raises(TooManyLoginsError):
            limit.begin("ann", "10.0.0.1")

    def test_many_attempts_at_once_gain_nothing(self, store: ControlStore) -> None:
        limit = LoginLimit(store.database, Limits(of_user=3, wait=100))

        def attempt(_: int) -> bool:
            try:
                limit.begin("ann", "10.0.0.1")
            except TooManyLoginsError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(attempt, range(16))) == 3


def place_of(store: ControlStore) -> str:
    """Return the address of a store, for another process."""
    return str(
        store.database.file or store.database.engine.url.render_as_string(hide_password=False)
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process."""
    process.kill()
    process.wait()


class ProcessesSuite:
    def test_processes_that_are_killed_at_any_moment_never_share_a_token(
        self, store: ControlStore, tmp_path: Path
    ) -> None:
        names = [f"d{n}" for n in range(4)]
        for name in names:
            deploy(store, name)
        place, claims = place_of(store), tmp_path / "claims"
        claims.touch()

        def work() -> None:
            leases = Leases(Database(place), length=0.02)
            me = f"w{os.getpid()}"
            with claims.open("ab", buffering=0) as file:
                while True:
                    for name in names:
                        if lease := leases.claim(name, me):
                            file.write(f"{name} {lease.token}\n".encode())
                    leases.renew(me)

        workers = [run_apart(work) for _ in range(3)]
        chance = Random(7)
        try:
            for target in range(20, 160, 20):
                eventually(
                    lambda target=target: claims.read_bytes().count(b"\n") > target, every=0.01
                )
                victim = chance.randrange(3)
                end(workers[victim])
                workers[victim] = run_apart(work)
        finally:
            for worker in workers:
                end(worker)
        noted = [line.split() for line in claims.read_text().splitlines()]
        assert len({tuple(claim) for claim in noted}) == len(noted) > 140
        # A process may be killed between its claim and its note: tokens are skipped, never used twice.
        newest = {run.deployment: run.token for run in store.leases.all()}
        assert all(int(token) <= newest[name] for name, token in noted)

    def test_counters_are_exact_when_processes_are_killed_while_they_count(
        self, store: ControlStore
    ) -> None:
        deploy(store)
        lease = store.leases.claim("orders", "w")
        assert lease
        place, last = place_of(store), 60

        def work() -> None:
            """Repeat the batch that is under way, as the engine does after a kill, and go on."""
            counters = Counters(Database(place))
            batch = max(0, counters.get("orders").batch)
            while batch < last:
                counters.count("orders", lease.token, done(lease.token, batch))
                batch += 1

        chance = Random(11)
        while (reached := store.counters.get("orders").batch) < last - 1:
            worker = run_apart(work)
            ahead = min(last - 1, reached + chance.randrange(1, 15))
            eventually(lambda ahead=ahead: store.counters.get("orders").batch >= ahead, every=0.001)
            end(worker)
        row = store.counters.get("orders")
        assert (row.batches, row.records) == (last, 10 * last)

    def test_a_process_that_is_killed_in_a_transaction_blocks_no_one(
        self, store: ControlStore, tmp_path: Path
    ) -> None:
        place, begun = place_of(store), tmp_path / "begun"

        def work() -> None:
            with Database(place).write() as session:
                events_module.next_number(session)
                begun.touch()
                signal.pause()

        worker = run_apart(work)
        eventually(begun.exists)
        end(worker)
        assert store.events.add("a", "state", "x") == 1
