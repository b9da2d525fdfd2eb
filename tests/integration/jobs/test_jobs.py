"""A job streams a topic through a parser into a table, counts exactly, and goes on after a restart."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from penstock import (
    Admin,
    Connection,
    Consumer,
    Job,
    State,
    Table,
    cancel,
    create_job,
    job_consumer,
    job_stats,
    jobs,
)
from penstock.errors import ConfigError
from penstock.jobs import Store
from penstock.jobs.job_display import watch
from penstock.testing import eventually, fill, read_all

COLUMNS = "id bigint, name string"
PATIENCE = 120.0


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def holds(table: Table, count: int) -> list[tuple[Any, ...]]:
    eventually(lambda: len(table) >= count, PATIENCE)
    return rows(table)


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "name": f"n{n}"} for n in range(count)]


@pytest.fixture
def filled(connection: Connection, topic: Callable[..., str]) -> str:
    fill(connection, topic(), numbers(20), key=lambda n: b"k%d" % n)
    return topic()


def as_dict(value: str) -> Any:
    return json.loads(value)


def as_tuple(value: str, key: str) -> Any:
    return json.loads(value)["id"], key


def as_list(value: str, _key: str, topic: str) -> Any:
    found = json.loads(value)
    return [found, (found["id"], topic)]


def as_pandas(value: str) -> Any:
    return pd.DataFrame([json.loads(value)])


def as_arrow(value: str) -> Any:
    return pa.Table.from_pylist([json.loads(value)])


@pytest.mark.by_turns
@pytest.mark.parametrize("parser", [as_dict, as_pandas, as_arrow, "json:loads", None])
def test_a_parser_gives_rows_in_any_form(job: Any, filled: str, parser: Any) -> None:
    made = job(filled, Table(COLUMNS), parser)
    assert holds(made.table, 20) == [(n, f"n{n}") for n in range(20)]


def test_a_parser_takes_the_key_and_the_topic(job: Any, filled: str, unique: str) -> None:
    two = job(filled, Table(COLUMNS), as_tuple, f"{unique}-two")
    three = job(filled, Table(COLUMNS), as_list, f"{unique}-three")

    assert holds(two.table, 20) == [(n, f"k{n}") for n in range(20)]
    assert holds(three.table, 40) == sorted(
        [(n, name) for n in range(20) for name in (f"n{n}", filled)]
    )


@pytest.mark.parametrize("form", [True, "arrow"])
def test_a_parser_takes_whole_tables(job: Any, filled: str, form: Any) -> None:
    def parse(table: Any) -> Any:
        payload = table["payload"] if form is True else table["payload"].to_pylist()
        return pd.DataFrame([json.loads(one) for one in payload])

    made = job(filled, Table(COLUMNS), parse, as_table=form, batch_size=5, throttle=0.5)
    assert holds(made.table, 20) == [(n, f"n{n}") for n in range(20)]
    assert made.stats()["batchSize"] == 5


def test_five_lines_are_enough(
    connection: Connection,
    filled: str,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs.sqlite"))
    job = create_job(filled, Table(COLUMNS), as_dict, unique, connection=connection)
    assert len(holds(job.table, 20)) == 20
    assert list(job_stats()["actionName"]) == [unique]
    cancel(unique)
    assert job_stats().empty


def test_a_keyed_table_keeps_the_newest_row_of_each_key(
    job: Any, connection: Connection, topic: Any
) -> None:
    fill(connection, topic(), [{"id": n % 3, "name": f"n{n}"} for n in range(9)])
    made = job(topic(), Table(COLUMNS, key="id"))

    eventually(lambda: made.now().records == 9, PATIENCE)
    assert rows(made.table) == [(0, "n6"), (1, "n7"), (2, "n8")]


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["files", "delta", "sqlite"])
def test_rows_go_into_tables_outside_of_the_process(
    job: Any, filled: str, tmp_path: Path, kind: str
) -> None:
    place = str(tmp_path / "table")
    sink = {
        "files": {"files": place},
        "delta": {"delta": place},
        "sqlite": {"database": {"url": f"sqlite:///{place}.db", "table": "rows"}},
    }[kind]
    made = job(filled, Table(COLUMNS, sink), as_dict)

    assert holds(made.table, 20) == [(n, f"n{n}") for n in range(20)]
    assert list(made.table.head(3).columns) == ["id", "name"]


def test_steps_stand_between_parser_and_table(job: Any, filled: str) -> None:
    made = job(filled, "stepped", COLUMNS, steps=[{"sql": "SELECT id * 2 AS twice FROM rows"}])
    assert holds(made.table, 20) == [(2 * n,) for n in range(20)]


def test_a_record_that_fails_is_counted_kept_and_named(
    job: Any, connection: Connection, topic: Any, unique: str
) -> None:
    bad = [n for n in range(3000) if n % 1000 == 7]

    def parse(value: str) -> Any:
        found = json.loads(value)
        if found["id"] == 1007:
            return {"id": "not a number", "name": "x"}
        if found["id"] in bad:
            raise KeyError("price")
        return found

    fill(connection, topic(), numbers(3000))
    made = job(topic(), Table(COLUMNS), parse)
    eventually(lambda: made.now().records == 3000, PATIENCE)
    stats = made.stats()

    assert (stats["processedMsgCount"], stats["failedMsgCount"]) == (2997, 3)
    assert stats["lastErrMsg"] == f"{topic()}-0-2007: KeyError: 'price'"
    assert not pd.isna(stats["lastFailedTimestamp"])
    assert stats["state"] == "RUNNING"
    letters = read_all(connection, f"{unique}.dead-letters")
    assert sorted(json.loads(letter.value)["id"] for letter in letters) == bad
    errors = {json.loads(letter.value)["id"]: dict(letter.headers) for letter in letters}
    assert errors[1007]["penstock.error"].decode() == (
        "the column 'id': 'not a number' does not fit bigint; "
        "the row: {'id': 'not a number', 'name': 'x'}"
    )


def test_a_job_goes_on_where_it_was_with_its_counts(
    job: Any, connection: Connection, filled: str, store: Store, unique: str
) -> None:
    first = job(filled, Table(COLUMNS), as_dict)
    assert len(holds(first.table, 20)) == 20
    eventually(lambda: first.now().records == 20, PATIENCE)
    first.stop()
    assert [one.state for one in jobs.jobs(store)] == [State.STOPPED]

    fill(connection, filled, numbers(25)[20:])
    (again,) = jobs.resume_jobs(store)
    eventually(lambda: again.now().records == 25, PATIENCE)
    assert again.stats()["processedMsgCount"] == 25
    assert rows(again.table) == [(n, f"n{n}") for n in range(25)]
    texts = [event.text.partition(" by ")[0] for event in store.events(unique)]
    wanted = ("created", "running, asked for", "stopped, asked for")
    assert [texts.count(text) for text in wanted] == [1, 2, 1]
    again.stop()


def test_the_same_call_goes_on_with_another_parser_and_refuses_another_place(
    job: Any, filled: str, connection: Connection, topic: Any
) -> None:
    first = job(filled, Table(COLUMNS), as_dict)
    assert len(holds(first.table, 20)) == 20
    first.stop()
    fill(connection, filled, numbers(21)[20:])
    again = job(
        filled, Table(COLUMNS), lambda value: {"id": json.loads(value)["id"], "name": "new"}
    )
    assert holds(again.table, 21)[-1] == (20, "new")
    again.stop()

    fill(connection, topic("other"), numbers(1))
    with pytest.raises(ConfigError, match="reads other topics or fills another table"):
        job(topic("other"), Table(COLUMNS), as_dict)


def test_names_are_unique(job: Any, filled: str, unique: str) -> None:
    job(filled, Table(COLUMNS), as_dict)
    with pytest.raises(ConfigError, match=f"the job '{unique}' already exists"):
        job(filled, Table(COLUMNS), as_dict)


def test_a_cancelled_job_is_gone_and_its_name_is_free(
    job: Any, filled: str, store: Store, unique: str, connection: Connection
) -> None:
    made = job(filled, Table(COLUMNS), as_dict)
    assert len(holds(made.table, 20)) == 20
    number = made.id
    jobs.cancel(number, store)

    assert jobs.job_stats(store).empty
    with pytest.raises(ConfigError, match=f"there is no job '{unique}'"):
        jobs.cancel(unique, store)
    # The group's offsets stay: a new job of this name goes on there.
    fill(connection, filled, [{"id": 99, "name": "late"}])
    assert holds(job(filled, Table(COLUMNS, "elsewhere"), as_dict).table, 1) == [(99, "late")]


def test_a_name_wins_over_an_id(job: Any, filled: str, store: Store, unique: str) -> None:
    first = job(filled, Table(COLUMNS), as_dict, f"{unique}-a")
    named = job(filled, Table(COLUMNS), as_dict, first.id)
    jobs.cancel(first.id, store)
    assert [one.name for one in jobs.jobs(store)] == [f"{unique}-a"]
    assert named.store.get(first.id) is None


def test_another_process_may_ask_for_the_end(job: Any, filled: str, store: Store) -> None:
    made = job(filled, Table(COLUMNS), as_dict)
    assert len(holds(made.table, 20)) == 20
    eventually(lambda: store.get(made.name).is_alive)
    Job(store, made.name).cancel()  # a handle on a job that it does not run, as another process has

    eventually(lambda: store.get(made.name) is None, PATIENCE)
    assert repr(made) == f"<Job {made.name} cancelled>"


def test_a_job_takes_over_a_consumers_subscription(
    job: Any, connection: Connection, filled: str, unique: str, store: Store
) -> None:
    with Consumer(connection, group_id=f"{unique}-group", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(filled)
        made = job(consumer, Table(COLUMNS), as_dict)
        assert len(holds(made.table, 20)) == 20
        assert job_consumer(unique, store) is consumer
        assert consumer.subscription == []
        eventually(lambda: consumer.committed([(filled, 0)]) == {(filled, 0): 20}, PATIENCE)
        assert made.stats()["autoCommit"]


def test_without_auto_commit_nothing_is_committed_and_nothing_is_read_twice(
    job: Any, connection: Connection, filled: str, unique: str, store: Store
) -> None:
    first = job(filled, Table(COLUMNS), as_dict, auto_commit=False)
    assert len(holds(first.table, 20)) == 20
    eventually(lambda: first.now().records == 20, PATIENCE)
    first.stop()
    with Admin(connection) as admin:
        assert admin.committed(unique) == {}
    fill(connection, filled, numbers(21)[20:])
    (again,) = jobs.resume_jobs(store)
    assert holds(again.table, 21) == [(n, f"n{n}") for n in range(21)]
    assert not again.stats()["autoCommit"]
    again.stop()


def test_a_parser_by_value_is_kept_and_one_that_cannot_be_kept_is_refused(
    job: Any, filled: str, connection: Connection, store: Store
) -> None:
    import threading

    lock = threading.Lock()

    def locked(value: str) -> Any:
        with lock:
            return json.loads(value)

    with pytest.raises(ConfigError, match=r"locked' cannot be stored for the next start: .*lock"):
        job(filled, Table(COLUMNS), locked)
    assert jobs.jobs(store) == []

    word = "kept"
    made = job(filled, Table(COLUMNS), lambda value: (json.loads(value)["id"], word))
    assert len(holds(made.table, 20)) == 20
    made.stop()
    fill(connection, filled, numbers(21)[20:])
    (again,) = jobs.resume_jobs(store)
    assert holds(again.table, 21)[-1] == (20, "kept")
    again.stop()


def test_a_job_tells_about_itself(job: Any, filled: str, unique: str) -> None:
    made = job(filled, Table(COLUMNS), as_dict)
    eventually(lambda: made.now().records == 20, PATIENCE)
    eventually(lambda: made.now().state == "RUNNING", PATIENCE)

    assert repr(made).startswith(f"<Job {unique} RUNNING: 20 processed, 0 failed, lag 0, ")
    page = made._repr_html_()
    assert unique in page
    assert "RUNNING" in page
    assert list(made.table.head(2)["name"]) == ["n0", "n1"]
    made.stop()
    shown = io.StringIO()
    watch([made], 0.1, Console(file=shown, width=120))
    assert "STOPPED" in shown.getvalue()


def test_mistakes_are_reported_before_anything_is_stored(
    store: Store, connection: Connection, filled: str
) -> None:
    wrong = {
        "which columns does the parser return": {"table": "t", "parser": as_dict},
        "neither a parser nor columns were given": {"table": "t", "parser": None},
        "a table is the name of one in memory": {"table": 5, "parser": as_dict},
        "takes 4 arguments": {"table": Table(COLUMNS), "parser": lambda a, b, c, d: None},
        "queue_depth is 0": {"table": Table(COLUMNS), "parser": as_dict, "queue_depth": 0},
        "there is no topic 'nowhere'": {
            "table": Table(COLUMNS),
            "parser": None,
            "source": "nowhere",
        },
    }
    for words, given in wrong.items():
        source = given.pop("source", filled)
        with pytest.raises(ConfigError, match=words):
            create_job(source, name="wrong", connection=connection, store=store, **given)
    assert jobs.jobs(store) == []
