"""Settings, partitions and records of topics; Kafka's own tools are the judge of what was changed."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable

import pytest

from penstock.config import Connection
from penstock.embedded.tools import run_tool
from penstock.errors import ConfigError
from penstock.kafka import Admin
from penstock.testing import fill

NewTopic = Callable[..., str]


def configured(connection: Connection, topic: str) -> dict[str, str]:
    """What is not Kafka's default, as kafka-topics tells it: name=value,name=value,value,..."""
    reported = run_tool("kafka-topics", connection, ["--describe", "--topic", topic])
    (shown,) = re.findall(r"Configs: (\S*)", reported)
    return dict(re.findall(r"([a-z.]+)=([^=]*?)(?=,[a-z.]+=|$)", shown))


def test_altering_sets_and_unsets_and_leaves_the_rest(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(1, **{"retention.ms": "60000", "segment.bytes": "2000000"})
    admin.alter_topic(
        topic,
        {
            "cleanup.policy": ["compact", "delete"],
            "retention.ms": None,
            "max.message.bytes": 5000,
            "unclean.leader.election.enable": True,
        },
    )
    expected = {
        "cleanup.policy": "compact,delete",
        "max.message.bytes": "5000",
        "segment.bytes": "2000000",
        "unclean.leader.election.enable": "true",
    }
    assert admin.describe_topic(topic).config == expected
    reported = configured(connection, topic)
    assert reported.items() >= expected.items()
    assert reported["retention.ms"] == "-1"  # the broker's own again


def test_settings_tell_where_they_were_made(admin: Admin, new_topic: NewTopic) -> None:
    topic = new_topic(1, **{"retention.ms": "60000"})
    settings = {setting.name: setting for setting in admin.topic_settings(topic)}
    assert list(settings) == sorted(settings)
    assert (settings["retention.ms"].value, settings["retention.ms"].source) == ("60000", "topic")
    assert settings["cleanup.policy"].source == "default"
    assert [name for name, setting in settings.items() if setting.own] == ["retention.ms"]


@pytest.mark.parametrize("config", [{"retention": "5"}, {"retention.ms": "soon"}])
def test_a_setting_that_the_broker_refuses_changes_nothing(
    admin: Admin, new_topic: NewTopic, config: dict[str, str]
) -> None:
    topic = new_topic()
    with pytest.raises(ConfigError, match=f"settings of topic '{topic}'.*(retention)"):
        admin.alter_topic(topic, {"segment.bytes": "2000000", **config})
    assert admin.describe_topic(topic).config == {}


def test_partitions_are_added_and_can_be_written_at_once(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    admin.add_partitions(topic, 4)
    fill(connection, topic, ["a", "b", "c", "d"], partitions=4)
    assert list(admin.latest(admin.partitions([topic])).values()) == [1, 1, 1, 1]


@pytest.mark.parametrize("total", [1, 2])
def test_partitions_are_never_taken_away(admin: Admin, new_topic: NewTopic, total: int) -> None:
    topic = new_topic(2)
    with pytest.raises(ConfigError, match=rf"has 2 partitions, and {total} were.*at least 3"):
        admin.add_partitions(topic, total)


def test_records_are_deleted_up_to_an_offset(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    fill(connection, topic, map(str, range(20)), partitions=2)
    assert admin.delete_records({(topic, 0): 4, (topic, 1): -1}) == {(topic, 0): 4, (topic, 1): 10}
    assert admin.earliest(admin.partitions([topic])) == {(topic, 0): 4, (topic, 1): 10}
    assert admin.delete_records({}) == {}


@pytest.mark.parametrize(
    "call",
    [
        lambda admin, name: admin.alter_topic(name, {"retention.ms": 1}),
        lambda admin, name: admin.add_partitions(name, 9),
        lambda admin, name: admin.topic_settings(name),
        lambda admin, name: admin.delete_records({(name, 0): 0}),
        lambda admin, name: admin.latest([(name, 0)]),
    ],
    ids=["alter", "add", "settings", "delete", "latest"],
)
def test_a_missing_topic_is_an_error_with_the_nearest(
    admin: Admin, new_topic: NewTopic, call: Callable[[Admin, str], object]
) -> None:
    topic = new_topic()
    with pytest.raises(ConfigError, match=f"no topic '{topic}x'; the nearest: .*{topic}"):
        call(admin, f"{topic}x")


def test_a_partition_that_is_not_there_is_an_error_with_those_that_are(
    admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    with pytest.raises(ConfigError, match=f"'{topic}' has no partition 3; it has 0 to 2"):
        admin.latest([(topic, 3)])


def test_a_closed_admin_says_so(connection: Connection) -> None:
    admin = Admin(connection)
    admin.close()
    with pytest.raises(ConfigError, match="closed; create another one"):
        admin.topics()


def test_a_client_is_freed_where_its_admin_is_closed(connection: Connection) -> None:
    with Admin(connection) as admin:
        admin.topics()
        client = weakref.ref(admin._ask.client)
    assert client() is None
