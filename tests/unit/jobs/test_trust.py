"""A row of a store runs no code, unless the store is a file that only this user can have written."""

from __future__ import annotations

import base64
import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.unit.jobs.conftest import OPTIONS

from penstock.control.job_spec import JobSpec
from penstock.control.private_files import distrust
from penstock.control.store.rows import Desired, Kind
from penstock.control.stored_functions import _PYTHON, deserialize, shown
from penstock.errors import ConfigError
from penstock.jobs import Job, Store, cancel, jobs
from penstock.jobs.job_definition import Description, same_place
from penstock.jobs.job_functions import store_job
from penstock.worker.starting import Starting


class Canary:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return open, (str(self.file), "w")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


@pytest.fixture
def definition(canary: Path, tmp_path: Path) -> dict[str, Any]:
    """A definition with code wherever a row could have it."""
    value = base64.b64encode(pickle.dumps(Canary(canary))).decode()
    code = {"$function": "m:f", "value": value, "python": _PYTHON}
    return {
        "name": "evil",
        "state": str(tmp_path / "state"),
        "source": {"kafka": {"topics": ["t"], "start": "earliest"}},
        "decode": {"python": {"function": code, "schema": "n int"}},
        "steps": [{"python": {"function": code}}],
        "sink": {"memory": {"table": "t"}},
    }


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder that others can write to."""
    folder = tmp_path / "others"
    folder.mkdir()
    folder.chmod(0o702)
    return folder


@pytest.fixture
def shared(definition: dict[str, Any], others: Path) -> Store:
    """A store with a row that another user put there."""
    store = Store(others / "jobs.sqlite")
    _plant(store, definition)
    return store


def _plant(store: Store, definition: dict[str, Any]) -> None:
    text = JobSpec(definition, OPTIONS, "666").sealed("evil", store.control.secrets)
    store.control.deployments.put("evil", Kind.JOB, text, by="other", desired=Desired.STOPPED)


def test_listing_showing_and_cancelling_load_no_code(shared: Store, canary: Path) -> None:
    (job,) = jobs(shared)
    assert repr(job).startswith("<Job evil STOPPED")
    assert job.stats()["actionName"] == "evil"
    assert "m:f" in json.dumps(shown(job.row.definition))
    assert same_place(job.row.definition, job.row.definition)
    cancel("evil", shared)
    assert shared.all() == []
    assert not canary.exists()


def test_a_job_of_a_shared_store_is_not_run_from_its_code(shared: Store, canary: Path) -> None:
    job = Job(shared, "evil")
    for use in (job.start, lambda: job.pipeline, lambda: job.table, lambda: job.consumer):
        with pytest.raises(ConfigError, match="only a private file of your own may contain code"):
            use()
    assert not canary.exists()
    assert not shared.all()[0].is_alive  # and it was not taken either
    row = shared.control.deployments.find("evil")
    with pytest.raises(ConfigError, match="only a private file of your own may contain code"):
        Starting(shared.control).pipeline(row)
    assert not canary.exists()


def test_a_definition_is_not_trusted_unless_somebody_says_so(
    definition: dict[str, Any], canary: Path
) -> None:
    with pytest.raises(ConfigError, match="'m:f' was stored by value"):
        deserialize(definition)
    assert not canary.exists()


def test_a_shared_store_takes_no_code_neither_new_nor_renewed(
    definition: dict[str, Any], canary: Path, others: Path
) -> None:
    store = Store(others / "jobs.sqlite")
    code, harmless = JobSpec(definition, OPTIONS, "1"), JobSpec({"name": "evil"}, OPTIONS, "1")
    with pytest.raises(ConfigError, match="only a private file of your own may contain code"):
        store.put("evil", code)
    store.put("evil", harmless)
    with pytest.raises(ConfigError, match="only a private file of your own may contain code"):
        store.put("evil", code)
    assert store.all()[0].definition == {"name": "evil"}
    assert not canary.exists()


def test_renewing_a_job_whose_row_has_code_does_not_run_it(shared: Store, canary: Path) -> None:
    mine = {
        "name": "evil",
        "source": {"kafka": {"topics": ["t"]}},
        "decode": {"json": {"schema": "n int"}},
        "sink": {"memory": {"table": "t"}},
    }
    assert not store_job(shared, Description("evil", mine, OPTIONS), Desired.STOPPED)
    assert not canary.exists()


def test_a_private_file_holds_code_and_a_file_that_others_can_change_does_not(
    tmp_path: Path, definition: dict[str, Any], canary: Path
) -> None:
    folder = tmp_path / "private"
    store = Store(folder / "jobs.sqlite")
    _plant(store, definition)
    job = Job(store, "evil")

    folder.chmod(0o702)
    with pytest.raises(ConfigError, match="others can write to its folder"):
        _ = job.pipeline
    folder.chmod(0o700)
    (folder / "jobs.sqlite").chmod(0o620)
    with pytest.raises(ConfigError, match="can be opened by others"):
        _ = job.pipeline
    (folder / "jobs.sqlite").chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="others can replace folders"):
        _ = job.pipeline
    tmp_path.chmod(0o700)
    assert not canary.exists()

    with pytest.raises(Exception, match="is not a callable"):  # what the canary gives
        _ = job.pipeline
    assert canary.exists()


def test_a_file_by_a_link_or_on_a_network_holds_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "jobs.sqlite"
    sqlite3.connect(file).close()
    file.touch(0o600)
    file.chmod(0o600)
    assert distrust(file) is None
    link = tmp_path / "link"
    link.symlink_to(file)
    assert "is not a regular file" in str(distrust(link))
    assert "cannot be checked" in str(distrust(tmp_path / "missing"))

    mounted = [type("Mount", (), {"mountpoint": str(tmp_path), "fstype": "nfs4"})]
    monkeypatch.setattr(
        "penstock.control.private_files.psutil.disk_partitions", lambda **_: mounted
    )
    assert "network file system (nfs4)" in str(distrust(file))


def test_cancelling_removes_the_state_of_a_pipeline_and_no_other_folder(
    tmp_path: Path, definition: dict[str, Any]
) -> None:
    homework = tmp_path / "state" / "evil"
    homework.mkdir(parents=True)
    (homework / "thesis.txt").write_text("years of work")
    store = Store(tmp_path / "jobs.sqlite")
    _plant(store, definition)
    cancel("evil", store)
    assert (homework / "thesis.txt").exists()

    (homework / "thesis.txt").unlink()
    (homework / "1700000000").mkdir()
    (homework / "lock").touch()
    _plant(store, definition)
    cancel("evil", store)
    assert not homework.exists()


def test_a_name_cannot_lead_out_of_the_state_folder(
    tmp_path: Path, definition: dict[str, Any]
) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "lock").touch()
    store = Store(tmp_path / "jobs.sqlite")
    _plant(store, definition | {"name": ".."})
    cancel("evil", store)
    assert (tmp_path / "lock").exists()
