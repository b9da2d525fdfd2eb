"""MirrorMaker's source: topics of another cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.common_keys import (
    KEY_CONVERTER,
    PREDICATES,
    TASKS_MAX,
    TRANSFORMS,
    VALUE_CONVERTER,
)
from penstock.connect.config_definition import Key, Type, at_least
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported
from penstock.connect.converters import find_converter
from penstock.connect.java_client import cluster_settings
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given, only
from penstock.errors import ConfigError
from penstock.pipeline.topic_pattern import fits_any

_SOURCE, _TARGET = "source.cluster.", "target.cluster."
_POLICY = "org.apache.kafka.connect.mirror."
_DEFAULT, _IDENTITY = f"{_POLICY}DefaultReplicationPolicy", f"{_POLICY}IdentityReplicationPolicy"
_EXCLUDED = (".*[\\-\\.]internal", ".*\\.replica", "__.*")
_POSITIONS = "positions are in the transaction of the records, in penstock-positions"
_GROUPS = "offsets of groups are translated by PenstockMirrorSource, with groups or group_pattern"
# Settings of Java's clients that are about this client alone, and not about the cluster.
_CLIENT = ("source.consumer.", "consumer.", "source.admin.", "admin.", "target.admin.", "producer.")


def _plain_names(names: Any) -> str | None:
    wrong = [name for name in names or [] if not re.fullmatch(r"(?:[a-z.]|\\\.)+", name)]
    return f"settings are given by their names, not by patterns: {wrong[0]}" if wrong else None


class MirrorSource(MappedClass):
    """Topics of another cluster, copied with partitions, keys, headers and times."""

    names: ClassVar[tuple[str, ...]] = (f"{_POLICY}MirrorSourceConnector",)
    kind: ClassVar[Kind] = "source"
    component: ClassVar[str] = "mirror"
    differences: ClassVar[tuple[str, ...]] = (
        "Exactly-once, from the first start on; the target is the default connection of the "
        "workers.",
        "Settings of the other cluster have the names of Java's client or of librdkafka; key "
        "stores are PEM files.",
        "There are no checkpoints and heartbeats: offsets of groups are translated by "
        "`PenstockMirrorSource`, with `groups` or `group_pattern`.",
        "Rights (ACLs) are not copied.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "topics",
        "cluster": "source.cluster.bootstrap.servers",
        "alias": "source.cluster.alias",
        "exclude": "topics.exclude",
        "pattern": "topics",
        "topic": "replication.policy.separator",
    }
    keys: ClassVar[tuple[Key, ...]] = (
        Key("source.cluster.alias", documentation="The name of the other cluster.", importance="HIGH"),
        Key(
            "source.cluster.bootstrap.servers",
            documentation="Brokers of the other cluster; further settings of it are source.cluster.*.",
            importance="HIGH",
        ),
        Key(
            "target.cluster.alias",
            default="target",
            documentation="The name of the cluster of the workers, to which topics are copied.",
        ),
        Key("topics", Type.LIST, ".*", "Topics to copy: names, or regular expressions.", "HIGH"),
        Key("topics.exclude", Type.LIST, ",".join(_EXCLUDED), "Patterns of topics not to copy."),
        Key("topics.blacklist", Type.LIST, None, "The former name of topics.exclude.", "LOW"),
        Key(
            "replication.policy.class",
            Type.CLASS,
            _DEFAULT,
            "Names of copies: DefaultReplicationPolicy (ALIAS.TOPIC) or IdentityReplicationPolicy.",
            check=only((_DEFAULT, _IDENTITY), "classes of Java are not loaded"),
        ),
        Key("replication.policy.separator", default=".", documentation="What is after the alias."),
        Key("refresh.topics.enabled", Type.BOOLEAN, "true", "Whether new topics are looked for.",
            check=only(("true",), "new topics are always looked for")),
        Key("refresh.topics.interval.seconds", Type.LONG, "600", "How often.", check=at_least(1)),
        Key("sync.topic.configs.enabled", Type.BOOLEAN, "true", "Whether settings of topics are copied."),
        Key("sync.topic.acls.enabled", Type.BOOLEAN, None, "Whether rights are copied: they are not.",
            check=only(("false",), "rights (ACLs) of topics are not copied; give the target its own")),
        Key("config.properties.exclude", Type.LIST, None, "Settings of topics that are not copied.",
            check=_plain_names),
    )  # fmt: skip
    without_effect: ClassVar[KeyTable] = {
        "offset-syncs.*": _POSITIONS,
        "offset.lag.max": _POSITIONS,
        "emit.offset-syncs.enabled": _POSITIONS,
        "offset.flush.interval.ms": _POSITIONS,
        "target.cluster.*": "the target is the default connection of the workers",
        "replication.factor": "topics are made with the defaults of the target's brokers",
        "sync.topic.configs.interval.seconds": "they are followed with refresh.topics.interval.seconds",
        "sync.topic.acls.interval.seconds": "rights are not copied",
        "sync.group.offsets.*": _GROUPS,
        "emit.checkpoints.*": _GROUPS,
        "emit.heartbeats.*": "lag and state of a connector are in its status",
        "heartbeats.*": "lag and state of a connector are in its status",
        "groups*": _GROUPS,
        "consumer.poll.timeout.ms": "records are read as they come",
        "enabled": "a connector that exists is enabled",
        "admin.timeout.ms": "requests have their own time",
        **{f"{prefix}*": "clients have the settings of their cluster" for prefix in _CLIENT},
    }
    refused: ClassVar[KeyTable] = {
        "topic.filter.class": "classes of Java are not loaded; give topics and topics.exclude",
        "config.property.filter.class": "classes of Java are not loaded; give config.properties.exclude",
        "forwarding.admin.class": "classes of Java are not loaded",
        "config.properties.blacklist": "it is called config.properties.exclude",
        "use.incremental.alter.configs": "settings are always changed one by one; leave it out",
        "add.source.alias.to.metrics": "there are no such metrics; leave it out",
        "provenance.*": "records are copied as they are",
    }

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return that records stay what they are."""
        return Imported.final()

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield nothing for settings of the other cluster: all of them are used."""
        for key, text in super().warnings(config):
            if not key.startswith(_SOURCE):
                yield key, text

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what would change records, which are copied as they are."""
        try:
            _cluster(config)
        except ValueError as error:
            key = "source.cluster.bootstrap.servers"
            yield key, f"Invalid value for the configurations {_SOURCE}*: {error}"
        for key in (TRANSFORMS, PREDICATES):
            if config[key]:
                yield (
                    key,
                    f"Invalid value {config.get(key)} for configuration {key}: a mirror copies records "
                    "as they are; change them with a connector that reads the copies",
                )
        for key in (KEY_CONVERTER, VALUE_CONVERTER):
            if (name := config.get(key)) and not _keeps_bytes(name):
                yield (
                    key,
                    f"Invalid value {name} for configuration {key}: a mirror copies records as they are: "
                    "give ByteArrayConverter, or leave it out",
                )

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a mirror of the topics."""
        exclude = config["topics.blacklist"] or config["topics.exclude"]
        named = _are_names(config["topics"], exclude)
        identity = config["replication.policy.class"] == _IDENTITY
        options = {
            "cluster": _cluster(config),
            "alias": config["source.cluster.alias"],
            "topics": config["topics"] if named else None,
            "pattern": None if named else "|".join(f"(?:{topic})" for topic in config["topics"]),
            "exclude": None if named else exclude,
            "configs": config["sync.topic.configs.enabled"],
            "exclude_configs": [
                name.replace("\\", "") for name in config["config.properties.exclude"] or []
            ],
            "follow_every": config["refresh.topics.interval.seconds"],
            "topic": "{topic}"
            if identity
            else f"{{cluster}}{config['replication.policy.separator']}{{topic}}",
            "tasks_max": config[TASKS_MAX],
        }
        return {"source": {"mirror": given(options)}}


def _are_names(topics: list[str], exclude: list[str]) -> bool:
    """Return whether all topics are names, and none of them is excluded.

    >>> _are_names(["orders"], ["__.*"]), _are_names(["orders.*"], []), _are_names(["a"], ["a|b"])
    (True, False, False)
    """
    try:
        return all(re.fullmatch(r"[A-Za-z0-9_-]+", topic) for topic in topics) and not any(
            fits_any(pattern, topics) for pattern in exclude
        )
    except ValueError:
        return False  # the source reports what is wrong with a pattern


def _keeps_bytes(name: str) -> bool:
    try:
        return find_converter(name).form == "bytes"
    except ConfigError:
        return False


def _cluster(config: ConnectorConfig) -> dict[str, str]:
    """Return the settings of the other cluster, by the names of Java's client."""
    found = config.below(_SOURCE)
    return cluster_settings({key: value for key, value in found.items() if key != "alias"})
