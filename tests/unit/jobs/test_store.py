"""Jobs in the store: each batch is counted once, secrets are sealed, old files are taken over."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.jobs.conftest import OPTIONS, definition, put

from penstock.config.secrets import MASK
from penstock.control.job_spec import JobSpec
from penstock.control.places import store_place
from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store.rows import Desired, Kind
from penstock.engine import Done
from penstock.errors import ConfigError, SetupError
from penstock.jobs import Store
from penstock.pipeline import Mark


def done(epoch: int, batch: int, **more: Any) -> Done:
    given = {"records": 10, "rows": 9, "failed": 1, "seconds": 1.0, "error": "t-0-1: oops"}
    return Done(Mark(epoch, batch, 0), **(given | more))


def test_a_batch_that_comes_again_is_counted_once(store: Store) -> None:
    put(store, desired=Desired.RUNNING)
    lease = store.control.leases.claim("trades", "me")
    assert lease is not None
    for mark in ((1, 0), (1, 1), (1, 1), (1, 0), (2, 0), (1, 5)):
        store.control.counters.count("trades", lease.token, done(*mark))
    store.control.counters.count("trades", lease.token, done(2, 1, failed=0, error=None))

    found = store.find("trades")
    assert (found.batches, found.records, found.rows, found.failed) == (4, 40, 36, 3)
    assert found.last_error == "t-0-1: oops"


def test_the_later_error_is_the_last_one(store: Store) -> None:
    put(store, desired=Desired.RUNNING)
    lease = store.control.leases.claim("trades", "me")
    assert lease is not None
    store.control.counters.count("trades", lease.token, done(1, 0))
    store.control.leases.release("trades", "me", lease.token, "FAILED", "the table is gone")
    found = store.find("17")
    assert (found.last_error, found.shown_state) == ("the table is gone", "FAILED")


def test_a_definition_that_did_not_change_is_no_new_generation(store: Store) -> None:
    secret = {"database": {"url": "postgresql://me@db/shop", "password": "hunter-2", "table": "t"}}
    put(store, sink=secret)
    put(store, sink=secret)
    row = store.control.deployments.find("trades")
    assert row.generation == 1
    assert "hunter-2" not in row.spec
    assert store.find("trades").definition["sink"] == secret
    put(store, sink=secret, commit=False)
    assert store.control.deployments.find("trades").generation == 2


def test_jobs_are_listed_although_the_key_of_one_is_lost(store: Store) -> None:
    secret = {"database": {"url": "postgresql://me@db/shop", "password": "hunter-2", "table": "t"}}
    put(store, sink=secret)
    other = SpecSecrets(Sealer([bytes(32)]))
    text = JobSpec(definition("lost", sink=secret), OPTIONS, "18").sealed("lost", other)
    store.control.deployments.put("lost", Kind.JOB, text, by="me")

    passwords = {job.name: job.definition["sink"]["database"]["password"] for job in store.all()}
    assert passwords == {"trades": "hunter-2", "lost": MASK}
    assert store.find("18").name == "lost"
    with pytest.raises(
        SetupError, match="'lost' is encrypted with a key that is not in the key file"
    ):
        store.spec("lost")


def test_text_of_any_kind_comes_back(store: Store) -> None:
    text = 'é \U0001f600 "\\ \x7f\x85\u2028 \t ${env:X} $${Y} : - #'
    put(store, steps=[{"sql": text}])
    assert store.find("trades").definition["steps"] == [{"sql": text}]


def test_a_name_of_a_pipeline_is_refused(store: Store) -> None:
    store.control.deployments.put("trades", Kind.PIPELINE, "name: trades", by="me")
    assert store.get("trades") is None
    with pytest.raises(ConfigError, match="'trades' is a pipeline, and a job was given"):
        put(store)


def test_the_file_is_for_its_owner_alone(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "jobs.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(SetupError, match="can be opened by others"):
        Store(file)


def test_the_store_is_where_the_environment_says_or_where_an_old_release_had_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PENSTOCK_STORE", "PENSTOCK_JOBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("penstock.control.places.data_dir", lambda: tmp_path)
    assert store_place() == str(tmp_path / "control.sqlite")
    (tmp_path / "jobs.sqlite").touch()
    assert store_place() == str(tmp_path / "jobs.sqlite")
    (tmp_path / "control.sqlite").touch()
    assert store_place() == str(tmp_path / "control.sqlite")
    monkeypatch.setenv("PENSTOCK_JOBS", "jobs")
    assert store_place() == "jobs"
    monkeypatch.setenv("PENSTOCK_STORE", "store")
    assert store_place() == "store"
    assert store_place("given") == "given"


def test_a_spec_shows_no_secret(store: Store) -> None:
    spec = JobSpec(definition(connection={"sasl.password": "hunter-2"}), OPTIONS, "1")
    assert "hunter-2" not in repr(spec)
    sealed = json.loads(spec.sealed("trades", store.control.secrets))
    assert sealed["definition"]["connection"]["sasl.password"].startswith("${sealed:")
