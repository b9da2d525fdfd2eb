"""Jobs and tables by the plugin's names: documented arguments, statistics and ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.integration.dolphindb.documented import documented, documented_error

from penstock.compat import dolphindb as kafka
from penstock.errors import ConfigError
from penstock.testing import eventually

PATIENCE = 120.0


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs.sqlite"))
    yield
    for name in kafka.getJobStat()["actionName"]:
        kafka.cancelSubJob(name)


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_arrow().to_pylist()]


def parse(payload: str) -> pd.DataFrame:
    return pd.DataFrame({"id": json.loads(payload)})


@documented("createSubJob", "streamTable", "getJobStat")
def test_a_job_fills_a_stream_table_and_counts(consumer: Any, ten: str, unique: str) -> None:
    kafka.subscribe(consumer, ten)
    filled = kafka.streamTable(["id"], ["INT"])
    kafka.createSubJob(consumer, filled, parse, unique)

    eventually(lambda: len(filled) == 10, PATIENCE)
    assert rows(filled) == [(n,) for n in range(10)]
    eventually(lambda: kafka.getJobStat()["processedMsgCount"].sum() == 10, PATIENCE)
    (stat,) = kafka.getJobStat().to_dict("records")
    assert list(stat) == [
        "subscriptionId", "user", "actionName", "createTimestamp", "processedMsgCount",
        "failedMsgCount", "lastErrMsg", "lastFailedTimestamp", "msgAsTable", "batchSize", "throttle",
        "autoCommit",
    ]  # fmt: skip
    assert (stat["actionName"], stat["failedMsgCount"], stat["lastErrMsg"]) == (unique, 0, "")
    assert (stat["msgAsTable"], stat["batchSize"], stat["throttle"]) == (False, 0, 1.0)
    assert stat["autoCommit"] is False  # the consumer commits by itself
    assert stat["subscriptionId"].isdigit()
    assert pd.isna(stat["lastFailedTimestamp"])


@documented("createSubJob", "table")
def test_a_parser_of_tables_gets_payload_key_and_topic(
    consumer: Any, ten: str, unique: str
) -> None:
    def parse_table(msg: pd.DataFrame) -> pd.DataFrame:
        numbers = [json.loads(payload)[0] for payload in msg.payload]
        return pd.DataFrame({"id": numbers, "key": msg.key, "topic": msg.topic})

    kafka.subscribe(consumer, ten)
    filled = kafka.table(["id", "key", "topic"], ["LONG", "STRING", "SYMBOL"])
    kafka.createSubJob(consumer, filled, parse_table, unique, 0.1, True, True, 1000)

    eventually(lambda: len(filled) == 10, PATIENCE)
    assert rows(filled) == [(n, f"k{n}", ten) for n in range(10)]
    (stat,) = kafka.getJobStat().to_dict("records")
    assert (stat["msgAsTable"], stat["batchSize"], stat["throttle"]) == (True, 1000, 0.1)
    assert stat["autoCommit"] is True


@documented("keyedTable")
def test_a_keyed_table_keeps_the_newest_row(consumer: Any, ten: str, unique: str) -> None:
    def parse_key(payload: str) -> Any:
        number = json.loads(payload)[0]
        return number % 3, number

    kafka.subscribe(consumer, ten)
    filled = kafka.keyedTable("id", ["id", "last"], ["INT", "INT"])
    kafka.createSubJob(consumer, filled, parse_key, unique)

    eventually(lambda: kafka.getJobStat()["processedMsgCount"].sum() == 10, PATIENCE)
    assert sorted(rows(filled)) == [(0, 9), (1, 7), (2, 8)]


@documented("cancelSubJob", "getSubJobConsumer")
@documented_error("job-name-taken")
def test_a_job_is_ended_by_handle_name_or_id(consumer: Any, ten: str, unique: str) -> None:
    kafka.subscribe(consumer, ten)
    job = kafka.createSubJob(consumer, kafka.table(["id"], ["INT"]), parse, unique)
    assert kafka.getSubJobConsumer(job) is consumer
    assert kafka.getSubJobConsumer(unique) is consumer
    with pytest.raises(ConfigError, match=f"the job '{unique}' already exists"):
        kafka.subscribe(consumer, ten)
        kafka.createSubJob(consumer, kafka.table(["id"], ["INT"]), parse, unique)
    kafka.unsubscribe(consumer)

    kafka.cancelSubJob(int(kafka.getJobStat()["subscriptionId"][0]))
    assert kafka.getJobStat().empty
    with pytest.raises(ConfigError, match="there is no job"):
        kafka.cancelSubJob(job.name)


@documented_error("parser-fails")
def test_messages_that_the_parser_fails_on_are_counted_and_the_last_one_is_named(
    consumer: Any, ten: str, unique: str
) -> None:
    def fail_on_three(payload: str) -> Any:
        if payload in ("[1]", "[3]"):
            raise RuntimeError("one is too few" if "1" in payload else "three is too much")
        return json.loads(payload)[0], payload

    kafka.subscribe(consumer, ten)
    filled = kafka.table(["id", "text"], ["INT", "STRING"])
    kafka.createSubJob(consumer, filled, fail_on_three, unique)

    eventually(lambda: kafka.getJobStat()["processedMsgCount"].sum() == 8, PATIENCE)
    (stat,) = kafka.getJobStat().to_dict("records")
    assert stat["failedMsgCount"] == 2
    assert stat["lastErrMsg"] == f"{ten}-0-3: RuntimeError: three is too much"
    assert stat["lastFailedTimestamp"] >= stat["createTimestamp"]
    assert len(filled) == 8


@documented("createSubJob")
def test_what_a_job_cannot_be_made_of_is_refused(consumer: Any, ten: str, unique: str) -> None:
    with pytest.raises(ConfigError, match="consumer dict is not allowed"):
        kafka.createSubJob({"group.id": "x"}, kafka.table(["id"], ["INT"]), parse, unique)
    with pytest.raises(ConfigError, match="the consumer reads nothing yet"):
        kafka.createSubJob(consumer, kafka.table(["id"], ["INT"]), parse, unique)
    with pytest.raises(ConfigError, match="type 'INTT' is not supported"):
        kafka.table(["id"], ["INTT"])
    with pytest.raises(ConfigError, match="2 names and 1 types were given"):
        kafka.streamTable(["id", "x"], ["INT"])
    with pytest.raises(ConfigError, match="the key 'idd' is not a column"):
        kafka.keyedTable("idd", ["id"], ["INT"])
