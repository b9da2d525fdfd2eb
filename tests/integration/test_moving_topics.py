"""Topics that change under a pipeline: partitions added, topics created, deleted and recreated."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Admin, Connection, State, memory_table, start
from penstock.errors import DataLossError
from penstock.testing import eventually, fill


def numbers(first: int, until: int) -> list[dict[str, int]]:
    return [{"n": n} for n in range(first, until)]


def into_memory(pipeline: Any, table: str, **source: Any) -> Any:
    return pipeline(
        source={"kafka": source},
        decode={"json": {"schema": "n int", "metadata": ["topic", "partition", "offset"]}},
        sink={"memory": table},
        delivery="exactly-once",
        restart={"wait": "100ms", "limit": 0},
    )


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def rows(table: str) -> list[int]:
    return sorted(memory_table(table).to_pandas()["n"])


def has(running: Any, table: str, expected: list[int]) -> None:
    """Wait until the table has these rows; a pipeline that failed says why."""

    def there() -> bool:
        running.wait(0)
        return bool(running.progress().batches) and rows(table) == expected

    eventually(there, timeout=120)


def test_a_partition_that_is_added_while_it_runs_is_read_from_its_oldest_record(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    definition = into_memory(pipeline, unique, topics=topic())
    with start(definition) as running, Admin(connection) as admin:
        has(running, unique, list(range(5)))
        admin.add_partitions(topic(), 3)
        fill(connection, topic(), numbers(5, 20), partitions=3)
        has(running, unique, list(range(20)))
    with Admin(connection) as admin:
        assert admin.committed(unique) == {(topic(), 0): 10, (topic(), 1): 5, (topic(), 2): 5}


def test_the_range_of_a_new_partition_begins_where_the_partition_does(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    definition = into_memory(pipeline, unique, topics=topic())
    run_once(definition)
    with Admin(connection) as admin:
        admin.add_partitions(topic(), 2)
        fill(connection, topic(), numbers(5, 25), partitions=2)
        admin.delete_records({(topic(), 1): 4})

    progress = run_once(definition)

    assert (progress.records, progress.rows, progress.lost) == (10 + 6, 16, 0)
    assert len(rows(unique)) == 5 + 16


def test_topics_that_match_come_and_go(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic("a"), numbers(0, 5))
    definition = into_memory(pipeline, unique, pattern=f"{topic('')}[abc]")
    with start(definition) as running, Admin(connection) as admin:
        has(running, unique, list(range(5)))
        fill(connection, topic("b"), numbers(5, 10))
        has(running, unique, list(range(10)))
        admin.delete_topic(topic("a"))
        fill(connection, topic("c"), numbers(10, 15))
        has(running, unique, list(range(15)))
        eventually(lambda: admin.committed(unique) == {(topic("b"), 0): 5, (topic("c"), 0): 5})
        running.refresh_lag()
        progress = running.progress()
    assert (progress.lost, progress.restarts) == (0, 0)
    assert progress.lag.keys() == {f"{topic('b')}-0", f"{topic('c')}-0"}


@pytest.mark.by_turns
@pytest.mark.parametrize("size", [3, 5, 12])
def test_a_recreated_topic_is_read_from_its_beginning(
    connection: Connection, topic: Any, pipeline: Any, unique: str, size: int
) -> None:
    """Whether the new one ends before, at or behind the place where the old one was left."""
    fill(connection, topic("a"), numbers(0, 5))
    fill(connection, topic("b"), numbers(100, 103))
    definition = into_memory(pipeline, unique, pattern=f"{topic('')}[ab]")
    first = [*range(5), *range(100, 103)]
    with start(definition) as running, Admin(connection) as admin:
        has(running, unique, first)
        admin.delete_topic(topic("a"))
        fill(connection, topic("a"), numbers(200, 200 + size))
        has(running, unique, [*first, *range(200, 200 + size)])
        fill(connection, topic("a"), numbers(300, 302))
        fill(connection, topic("b"), numbers(400, 402))
        has(running, unique, [*first, *range(200, 200 + size), 300, 301, 400, 401])
        found = running.progress()
    assert (found.lost, found.restarts, found.state) == (0, 0, State.RUNNING)
    with Admin(connection) as admin:
        assert admin.committed(unique) == {(topic("a"), 0): size + 2, (topic("b"), 0): 5}


@pytest.mark.parametrize("on_data_loss", ["fail", "skip"])
def test_a_topic_that_was_recreated_while_it_was_stopped_is_read_from_its_beginning(
    connection: Connection, topic: Any, pipeline: Any, unique: str, on_data_loss: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    definition = into_memory(pipeline, unique, topics=topic(), on_data_loss=on_data_loss)
    run_once(definition)
    with Admin(connection) as admin:
        admin.delete_topic(topic())
    fill(connection, topic(), numbers(5, 15))

    assert run_once(definition).rows == 10
    assert rows(unique) == list(range(15))


def test_a_named_topic_may_go_and_come_back_where_loss_is_skipped(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic("a"), numbers(0, 5))
    fill(connection, topic("b"), numbers(5, 10))
    names = [topic("a"), topic("b")]
    definition = into_memory(pipeline, unique, topics=names, on_data_loss="skip")
    with start(definition) as running, Admin(connection) as admin:
        has(running, unique, list(range(10)))
        admin.delete_topic(topic("a"))
        fill(connection, topic("b"), numbers(10, 15))
        has(running, unique, list(range(15)))
    with start(definition) as running:
        fill(connection, topic("a"), numbers(15, 20))
        has(running, unique, list(range(20)))


def test_a_named_topic_that_is_deleted_ends_the_pipeline(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    with start(into_memory(pipeline, unique, topics=topic())) as running:
        has(running, unique, list(range(5)))
        with Admin(connection) as admin:
            admin.delete_topic(topic())
        with pytest.raises(Exception, match=f"there is no topic '{topic()}'"):
            running.wait(120)
    assert running.progress().state is State.FAILED


@pytest.mark.parametrize("on_data_loss", ["fail", "skip"])
def test_a_topic_that_is_deleted_with_unread_records(
    connection: Connection, topic: Any, pipeline: Any, unique: str, on_data_loss: str
) -> None:
    """The pipeline has read a part of it, and had seen that there is more."""
    fill(connection, topic("a"), numbers(0, 30))
    fill(connection, topic("b"), numbers(100, 130))
    deleted = []

    def delete(done: Any) -> None:
        if done.mark.batch == 1 and not deleted:
            with Admin(connection) as admin:
                admin.delete_topic(topic("a"))
            deleted.append(done.position)

    definition = into_memory(
        pipeline,
        unique,
        pattern=f"{topic('')}[ab]",
        on_data_loss=on_data_loss,
        max_records_per_batch=10,
    )
    with start(definition, on_batch=delete) as running:
        if on_data_loss == "fail":
            with pytest.raises(
                DataLossError,
                match=rf"{topic('a')}-0: the pipeline was at offset 10 when the topic was deleted: "
                r"20 records were removed before they were read; .*'on_data_loss: skip'",
            ):
                running.wait(120)
            assert running.progress().state is State.FAILED
            return
        has(running, unique, [*range(10), *range(100, 130)])
        progress = eventually(lambda: (p := running.progress()).rows == 40 and p)
    assert deleted == [{(topic("a"), 0): 10, (topic("b"), 0): 10}]
    assert (progress.lost, progress.rows, progress.state) == (20, 40, State.RUNNING)
    assert "20 records were removed" in str(progress.last_error)
