"""Small files and the lock of a state folder behind a URI, through Hadoop's own file systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Connection, start
from penstock.engine.batch_writing import Splitting
from penstock.engine.counting import Failures, Written
from penstock.engine.progress import State
from penstock.engine.state_dir import locked
from penstock.errors import ConfigError, FencedError, SetupError
from penstock.pipeline import Batch
from penstock.pipeline.hadoop import Hadoop
from penstock.pipeline.storage import Folder
from penstock.testing import eventually, fill
from penstock.worker.state_removal import remove_state


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture
def uri(spark: Any, tmp_path: Path, unique: str) -> str:
    """A URI that is not one of this disk to us: Hadoop's own view of file systems leads there."""
    name = unique.replace("-", "")
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{name}.link./state", f"file://{tmp_path}")
    return f"viewfs://{name}/state"


@pytest.fixture
def folder(spark: Any, uri: str) -> Folder:
    return Folder(spark, uri)


def test_a_file_is_written_read_replaced_and_removed(folder: Folder) -> None:
    folder.write("a/plan.json", '"näh"')
    folder.write("a/plan.json", '"other"')
    folder.write("a/x.json", "1")

    assert folder.read("a/plan.json") == '"other"'
    assert sorted(folder.names("a")) == ["plan.json", "x.json"]
    assert folder.sizes("a/p*") == {"a/plan.json": 7}
    folder.remove("a/plan.json")
    assert folder.read("a/plan.json") is None
    assert folder.names("a") == ["x.json"]
    assert folder.read("none/at all") is None
    assert not folder.exists("none/at all")


def test_a_file_is_created_once(folder: Folder) -> None:
    assert folder.create("log/1.json", '"first"')
    assert not folder.create("log/1.json", '"second"')
    assert folder.read("log/1.json") == '"first"'


class KilledError(Exception):
    """As if the process had been killed here."""


class Killed(Hadoop):
    """A store that replaces in two acts, in a process that is killed between them."""

    def replace(self, _draft: str, place: str) -> None:
        self._fs.delete(self._path(place), False)
        raise KilledError


def killed(spark: Any, folder: Folder) -> Folder:
    other = Folder(spark, folder.uri)
    other._store = Killed(spark, folder.uri)
    return other


def test_a_kill_while_a_file_is_replaced_leaves_the_old_text_or_the_new_one(
    spark: Any, folder: Folder
) -> None:
    folder.write("plan.json", '"old"')
    with pytest.raises(KilledError):
        killed(spark, folder).write("plan.json", '"new"')

    assert folder.read("plan.json") == '"new"'
    assert folder.exists("plan.json")
    assert folder.names() == ["plan.json"]
    folder.write("plan.json", '"newer"')
    assert folder.read("plan.json") == '"newer"'
    folder.remove("plan.json")
    assert folder.read("plan.json") is None


def test_a_draft_that_was_cut_off_is_no_file_and_one_of_a_removed_file_does_not_come_back(
    folder: Folder, tmp_path: Path
) -> None:
    (tmp_path / "new.json.draft").write_text('{"left": [')
    assert folder.read("new.json") is None
    assert folder.names() == []
    folder.write("plan.json", '"old"')
    (tmp_path / "plan.json.draft").write_text('"killed before the rename"')
    assert folder.read("plan.json") == '"old"'
    folder.remove("plan.json")
    assert folder.read("plan.json") is None


def test_a_batch_that_was_killed_while_its_plan_was_replaced_goes_on_with_the_parts_that_are_left(
    spark: Any, folder: Folder
) -> None:
    rows: Any = None
    connection: Any = None
    batch = Batch(rows, "p", 1, 7, connection, {("t", 0): (0, 8)})
    seen: list[tuple[int, int]] = []

    def write(killing: Callable[[], None]) -> Callable[[Batch], Written]:
        def written(part: Batch) -> Written:
            seen.extend(part.ranges.values())
            killing()
            return Written(1, Failures(0, 0))

        return written

    plans = Folder(spark, folder.uri)
    splitting = Splitting(
        plans, batch, write(lambda: setattr(plans, "_store", Killed(spark, folder.uri))), 10
    )
    with pytest.raises(KilledError):
        splitting.run()
    again = Splitting(folder, batch, write(lambda: None), 10)

    assert again.begun()
    again.run()
    assert seen == [(0, 4), (4, 8)]


def test_a_second_process_is_refused_and_a_holder_that_lost_the_state_hears_of_it(
    uri: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.engine.lease.RENEW", 0.2)
    lost: list[FencedError] = []
    with locked(uri, "p", on_lost=lost.append):
        with pytest.raises(ConfigError, match="already runs in another process"):
            locked(uri, "p")
        assert not lost
        folder.create(f"lease/{9:020}.json", '{"owner": "another", "host": "far", "pid": 1}')
        eventually(lambda: lost)
    assert "process 1 on far took over its state" in str(lost[0])


def test_a_pipeline_whose_state_another_process_took_over_ends_and_says_so(
    spark: Any,
    uri: str,
    pipeline: Any,
    connection: Connection,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.engine.lease.RENEW", 0.2)
    fill(connection, unique, [b'{"n": 1}'])
    running = start(
        pipeline(
            source={"kafka": {"topics": unique}},
            decode={"json": {"schema": "n bigint"}},
            sink={"memory": {"table": unique}},
            state=uri,
        )
    )
    try:
        eventually(lambda: running.progress().batches)
        lease = f"{unique}/lease/{9:020}.json"
        assert Folder(spark, uri).create(lease, '{"owner": "another", "host": "far", "pid": 1}')
        with pytest.raises(FencedError, match="process 1 on far took over its state"):
            running.wait(60)
        assert running.progress().state is State.FAILED
    finally:
        running.stop()


def test_the_state_of_a_deleted_deployment_is_removed_and_no_other_folder(
    uri: str, folder: Folder
) -> None:
    for file in ("orders/17/penstock-topics.json", "orders/17/offsets/0", "old/1/offsets/0"):
        folder.write(file, "{}")
    folder.write("lease/00000000000000000001.json", "{}")
    folder.write("table/2024/part-0", "{}")

    for name in ("orders", "old", "table", "nothing"):
        remove_state({"name": name, "state": uri})

    assert folder.names("orders") == folder.names("old") == []
    assert folder.read("table/2024/part-0") == "{}"
    assert sorted(folder.names()) == ["lease", "table"]


def test_a_state_at_a_uri_of_this_disk_is_removed(tmp_path: Path) -> None:
    state = f"file://{tmp_path}/states"
    locked(f"{state}/orders", "orders").close()
    (tmp_path / "states/orders/1").mkdir()

    remove_state({"name": "orders", "state": state})

    assert list((tmp_path / "states").iterdir()) == []


def test_a_state_that_java_cannot_reach_is_an_error_with_its_place(spark: Any) -> None:
    with pytest.raises(SetupError, match=r"viewfs://nowhere/state/orders cannot be removed: "):
        remove_state({"name": "orders", "state": "viewfs://nowhere/state"})
