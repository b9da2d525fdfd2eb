"""Where a consumer is: tables of offsets, the cluster's metadata, offsets that are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.integration.dolphindb.documented import documented, documented_error

from penstock import Admin, Connection, Consumer, Producer
from penstock.compat import dolphindb as kafka
from penstock.errors import ConfigError, PenstockError
from penstock.testing import eventually


@documented("getOffsetInfo")
def test_the_worked_example(config: dict[str, Any], ten: str) -> None:
    with kafka.consumer({**config, "enable.auto.commit": "false"}) as consumer:
        kafka.assign(consumer, ten, 0, 3)
        for _ in range(2):
            assert kafka.consumerPoll(consumer, 30_000, "PLAIN")[0] == ""
        (row,) = kafka.getOffsetInfo(consumer, ten, 0).to_dict("records")
        assert row == {
            "topic": ten,
            "partition": 0,
            "minOffset": 0,
            "maxOffset": 10,
            "offsetPosition": 5,
            "offsetCommitted": -1001,
        }
        kafka.commit(consumer)
        after = kafka.getOffsetInfo(consumer, [ten], [0])
        assert after.to_dict("records") == [{**row, "offsetCommitted": 5}]
        assert [str(kind) for kind in after.dtypes] == ["object", "int32", *["int64"] * 4]


@documented("getOffset", "getOffsetCommitted", "getOffsetPosition")
def test_each_kind_of_offset_is_a_question_of_its_own(consumer: Consumer, ten: str) -> None:
    kafka.assign(consumer, [ten], [0], [0])
    asked = ([ten], [0])
    nothing = {"topic": [ten], "partition": [0], "offset": [-1001]}
    assert kafka.getOffsetCommitted(consumer, *asked, [0]).to_dict("list") == nothing
    assert kafka.getOffsetPosition(consumer, *asked).to_dict("list") == nothing
    assert len(kafka.consumerPollBatch(consumer, 4)) == 4
    kafka.commitTopic(consumer, *asked, [3])
    found = kafka.getOffsetCommitted(consumer, *asked, [0], 30_000)
    assert found.to_dict("list") == {**nothing, "offset": [3]}
    assert kafka.getOffsetPosition(consumer, ten, 0).to_dict("list") == {**nothing, "offset": [4]}
    assert kafka.getOffset(consumer, ten, 0) == (0, 10)
    with pytest.raises(PenstockError, match="nknown partition"):
        kafka.getOffset(consumer, [ten, ten], [0, 2])


@documented("getOffset")
def test_the_ends_of_a_partition_come_from_the_broker_where_nothing_is_known(
    consumer: Consumer, ten: str
) -> None:
    assert kafka.getOffset(consumer, ten, 0) == (0, 10)
    assert kafka.getOffset(consumer, pd.Series([ten]), np.array([0])) == [(0, 10)]
    with pytest.raises(ConfigError, match="partition -1 is not allowed"):
        kafka.getOffset(consumer, ten, -1)


@documented("getOffsetInfo", "getOffsetCommitted", "getOffsetPosition", "assign", "commitTopic")
def test_topics_partitions_and_offsets_are_values_or_vectors(consumer: Consumer, ten: str) -> None:
    vectors = (np.array([ten]), pd.Series([0]), pa.array([4]))
    kafka.assign(consumer, *vectors)
    kafka.commitTopic(consumer, *vectors)
    for given in (vectors, (ten, 0, 4), ([ten], (0,), [4])):
        assert kafka.getOffsetCommitted(consumer, *given)["offset"].tolist() == [4]
        assert kafka.getOffsetPosition(consumer, *given[:2])["topic"].tolist() == [ten]
        assert kafka.getOffsetInfo(consumer, *given[:2])["offsetCommitted"].tolist() == [4]


@documented("storeOffset", "storeConsumedOffset")
def test_stored_offsets_are_what_is_committed(
    connection: Connection, config: dict[str, Any], ten: str
) -> None:
    by_hand = {"enable.auto.offset.store": False, "auto.commit.interval.ms": "100"}
    where = (ten, 0)
    with Admin(connection) as admin, kafka.consumer({**config, **by_hand}) as consumer:

        def committed() -> int | None:
            kafka.consumerPoll(consumer, 1)
            return admin.committed(config["group.id"]).get(where)

        kafka.assign(consumer, ten, 0, 0)
        assert len(kafka.consumerPollBatch(consumer, 10, 30_000)) == 10
        kafka.storeOffset(consumer, [ten], [0], [6])
        eventually(lambda: committed() == 6)
        kafka.storeConsumedOffset(consumer)
        eventually(lambda: committed() == 10)


@documented_error("stores-by-itself")
def test_a_consumer_that_stores_automatically_takes_no_offsets(
    consumer: Consumer, ten: str
) -> None:
    kafka.assign(consumer, ten, 0, 0)
    with pytest.raises(ConfigError, match="needs a consumer that does not do it by itself"):
        kafka.storeConsumedOffset(consumer)
    with pytest.raises(ConfigError, match="enable_auto_offset_store=False"):
        kafka.storeOffset(consumer, ten, 0, 1)


@documented("getMetadata")
def test_the_metadata_of_a_handle_a_configuration_or_an_address(
    connection: Connection, config: dict[str, Any], producer: Producer, consumer: Consumer, ten: str
) -> None:
    kafka.subscribe(consumer, ten)
    assert kafka.consumerPoll(consumer)[0] == ""
    host, _, port = connection.brokers.partition(":")
    for what in (producer, config, connection.brokers):
        metadata = kafka.getMetadata(what)
        assert list(metadata) == ["brokers", "consumerGroups", "topics"]
        assert metadata["brokers"].to_dict("records") == [
            {"id": 1, "host": host, "port": int(port)}
        ]
    metadata = kafka.getMetadata(consumer)
    assert metadata["topics"][ten].to_dict("records") == [
        {"id": 0, "error": "Success", "leader": 1, "replicas": [1]}
    ]
    group = metadata["consumerGroups"][config["group.id"]]
    assert [group[key] for key in ("state", "protocolType", "protocol", "error")] == [
        "Stable",
        "consumer",
        "range",
        "Success",
    ]
    (member,) = group["members"].values()
    assert list(group["members"]) == [kafka.getMemId(consumer)]
    assert (member["clientID"], member["memberAssignmentVersion"]) == ("rdkafka", 0)
    assert member["partitions"].to_dict("records") == [
        {"topic": ten, "partition": 0, "offset": -1001}
    ]
