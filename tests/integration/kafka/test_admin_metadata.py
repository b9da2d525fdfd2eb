"""The cluster at one glance, in the shape of the plugin's getMetadata, and what it survives."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer

from penstock.config import Connection
from penstock.embedded import Broker
from penstock.errors import BrokerUnavailableError, ConfigError, PenstockError, TransientError
from penstock.kafka import Admin, GroupOffsets, cluster_metadata
from penstock.testing import eventually

NewTopic = Callable[..., str]


def test_the_cluster_names_its_controller_and_its_brokers(
    admin: Admin, connection: Connection
) -> None:
    found = admin.cluster()
    (broker,) = found.brokers
    assert f"{broker.host}:{broker.port}" == connection.brokers
    assert found.controller == broker.id == 1
    assert len(found.id) == 22


def test_metadata_has_the_brokers_and_each_topics_partitions(
    admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    reported = admin.metadata()
    assert list(reported) == ["brokers", "consumerGroups", "topics"]
    assert [list(row) for row in reported["brokers"]] == [["id", "host", "port"]]
    assert reported["topics"][topic] == [
        {"id": 0, "error": "Success", "leader": 1, "replicas": [1]},
        {"id": 1, "error": "Success", "leader": 1, "replicas": [1]},
    ]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_metadata_has_each_groups_members_and_what_they_read(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic, protocol: str
) -> None:
    topic = new_topic(2)
    with GroupOffsets(connection, group) as offsets:
        offsets.commit({(topic, 0): 0})
    how = {"group.id": group, "client.id": "reader", "group.protocol": protocol}
    if protocol == "classic":
        how["partition.assignment.strategy"] = "roundrobin"
    consumer = Consumer(connection.librdkafka("consumer", **how) | {"log_level": 0})
    consumer.subscribe([topic])

    def read() -> Any:
        consumer.poll(0.1)
        reported = admin.metadata()["consumerGroups"][group]
        return any(member["partitions"] for member in reported["members"].values()) and reported

    try:
        reported = eventually(read)
    finally:
        consumer.close()
    ((member_id, member),) = reported.pop("members").items()
    assert member_id
    assert reported == {
        "state": "Stable",
        "protocolType": "consumer",
        "protocol": {"classic": "roundrobin", "consumer": "uniform"}[protocol],
        "error": "Success",
    }
    assert member == {
        "clientID": "reader",
        "clientHost": "/127.0.0.1",
        "memberAssignmentVersion": 0,
        "partitions": [
            {"topic": topic, "partition": 0, "offset": 0},
            {"topic": topic, "partition": 1, "offset": -1001},
        ],
    }


def test_a_group_that_only_committed_has_no_type_and_no_members(
    admin: Admin, connection: Connection, group: str, new_topic: NewTopic
) -> None:
    with GroupOffsets(connection, group) as offsets:
        offsets.commit({(new_topic(), 0): 0})
    assert admin.metadata()["consumerGroups"][group] == {
        "state": "Empty",
        "protocolType": "",
        "protocol": "",
        "error": "Success",
        "members": {},
    }


@pytest.mark.by_turns
@pytest.mark.parametrize(
    "named",
    [
        lambda connection: connection,
        lambda connection: connection.brokers,
        lambda connection: {"metadata.broker.list": connection.brokers, "group.id": "g"},
        Admin,
        lambda connection: SimpleNamespace(connection=connection),
    ],
    ids=["connection", "address", "mapping", "admin", "client"],
)
def test_metadata_comes_from_whatever_names_the_cluster(
    connection: Connection, named: Callable[[Connection], Any]
) -> None:
    (broker,) = cluster_metadata(named(connection))["brokers"]
    assert f"{broker['host']}:{broker['port']}" == connection.brokers


def test_what_names_no_cluster_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'host:port'; int was given"):
        cluster_metadata(9092)


@pytest.mark.by_turns
@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.groups(),
        lambda admin: admin.describe_group("g"),
        lambda admin: admin.delete_group("g"),
        lambda admin: admin.plan_reset("g", "earliest"),
        lambda admin: admin.metadata(),
        lambda admin: admin.cluster(),
        lambda admin: admin.acls(),
    ],
    ids=["groups", "describe", "delete", "reset", "metadata", "cluster", "acls"],
)
def test_a_broker_that_is_away_is_an_error_and_never_an_empty_answer(
    call: Callable[[Admin], object], capfd: pytest.CaptureFixture[str]
) -> None:
    unreachable = Connection.from_config({"bootstrap.servers": "127.0.0.1:1"})
    with (
        Admin(unreachable, timeout=1) as admin,
        pytest.raises(BrokerUnavailableError, match=r"127.0.0.1:1"),
    ):
        call(admin)
    assert capfd.readouterr() == ("", "")


def test_questions_about_groups_outlive_brokers_that_die_under_them() -> None:
    """librdkafka aborts the process that asks: it must not be ours."""
    with Broker() as broker, Admin(broker.connection, timeout=2) as admin:
        admin.create_topic("t")
        with GroupOffsets(broker.connection, "g") as offsets:
            offsets.commit({("t", 0): 0})
        done, outcomes = Event(), []

        def ask() -> None:
            while not done.is_set():
                outcomes.append(outcome(admin))

        asking = Thread(target=ask)
        asking.start()
        try:
            for _ in range(2):
                answered = outcomes.count("empty")
                eventually(lambda seen=answered: outcomes.count("empty") > seen)
                broker.kill()
                broker.restart()
        finally:
            done.set()
            asking.join()
        assert [each for each in outcomes if each not in PASSING] == []
        assert eventually(lambda: outcome(admin) == "empty")


PASSING = ("empty", BrokerUnavailableError, TransientError)


def outcome(admin: Admin) -> object:
    try:
        return admin.describe_group("g").state
    except PenstockError as error:
        return type(error)
