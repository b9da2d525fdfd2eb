"""The source `mirror`: its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from penstock.config import Connection, find_connection
from penstock.imports.mirror.mirror_system import MirrorSystem
from penstock.pipeline.importing import POSITIONS, Import, System
from penstock.pipeline.values import AnyConnection, Duration

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")

NOT_COPIED = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
"""Settings of topics that are about their own cluster, as in Kafka's MirrorMaker."""


def _names(given: Any) -> Any:
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else given


Names = Annotated[
    list[str],
    BeforeValidator(_names),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _patterns(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


Patterns = Annotated[
    list[str],
    BeforeValidator(_patterns),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class MirrorImport(Import):
    """Topics of another Kafka cluster, copied with their partitions, keys, headers, times and settings.

    Each record is in the target exactly once, whatever was killed when: the position in the source is
    written in the transaction of the records. Records of transactions that were aborted are not copied.
    Topics that are created, get partitions or change their settings are followed while it runs.

    The offsets of groups are translated: a consumer that moves to the target continues there without
    missing a record. It may read some records again. A group that commits in the target itself is left
    alone from then on.
    """

    name = "mirror"
    main_option = "topics"
    topic_names = frozenset({"topic", "cluster"})

    cluster: AnyConnection = Field(
        description="The cluster to copy from: a named connection, or its settings."
    )
    alias: str = Field(
        default="",
        description="What `{cluster}` is in names of topics; default: the name of the connection.",
    )
    topics: Names = Field(default_factory=list, description="Topics to copy: one, or several.")
    pattern: str | None = Field(
        default=None, description="Instead of topics: a regular expression for topic names."
    )
    exclude: Patterns = Field(
        default_factory=list,
        description="Regular expressions for names that `pattern` leaves out. Names with two "
        "underscores in front and Penstock's own are always left out.",
    )
    configs: bool = Field(
        default=True,
        description="Whether the settings of the topics are copied, and followed when they change.",
    )
    exclude_configs: Names = Field(
        default_factory=lambda: list(NOT_COPIED),
        description="Settings that are not copied: by default those that are about their own cluster.",
    )
    follow_every: Duration = Field(
        default=30.0, gt=0, description="How often to look for new topics, partitions and settings."
    )
    groups: Names = Field(
        default_factory=list, description="Consumer groups whose offsets are translated."
    )
    group_pattern: str | None = Field(
        default=None, description="Instead of groups: a regular expression for their names."
    )
    groups_every: Duration = Field(
        default=10.0, gt=0, description="How often the offsets of groups are translated."
    )
    on_data_loss: Literal["fail", "skip"] = Field(
        default="fail",
        description="When the source has removed records before they were copied: `fail` ends the "
        "mirror; `skip` continues without them, with a dead letter that says which.",
    )
    poll: Duration = Field(
        default=1.0,
        gt=0,
        description="How long to wait before asking again when nothing was there.",
    )
    max_records: int = Field(
        default=100_000, ge=1, description="The most records of one transaction, about."
    )

    @model_validator(mode="before")
    @classmethod
    def _named_like_the_connection(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("alias"):
            return given
        cluster = given.get("cluster")
        if isinstance(cluster, str) and _NAME.fullmatch(cluster):
            return {**given, "alias": cluster}
        return given

    @field_validator("alias")
    @classmethod
    def _can_be_in_a_name(cls, given: str) -> str:
        if given and not _NAME.fullmatch(given):
            raise ValueError(
                f"{given!r} cannot be in the name of a topic; allowed: letters, digits, dot, dash and "
                "underscore"
            )
        return given

    @field_validator("pattern", "group_pattern")
    @classmethod
    def _is_a_pattern(cls, given: str | None) -> str | None:
        return given if given is None else _compiled(given)

    @field_validator("exclude")
    @classmethod
    def _are_patterns(cls, given: list[str]) -> list[str]:
        return [*map(_compiled, given)]

    @field_validator("topics")
    @classmethod
    def _are_topics(cls, given: list[str]) -> list[str]:
        for name in given:
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
                raise ValueError(f"{name!r} is not the name of a topic; for several, use 'pattern'")
            if is_own(name):
                raise ValueError(
                    f"{name!r} belongs to its cluster, and cannot be mirrored; leave it out"
                )
        return given

    @model_validator(mode="after")
    def _options_fit(self) -> MirrorImport:
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("give either topics or pattern")
        if self.exclude and self.pattern is None:
            raise ValueError("'exclude' is about 'pattern'; leave names out of 'topics' instead")
        if self.groups and self.group_pattern is not None:
            raise ValueError("give either groups or group_pattern")
        return self

    def topic_obstacle(self, topic: str, *, alone: bool) -> str | None:
        """Return what is wrong with the names of the copies."""
        if not alone:
            return (
                "a mirror copies records as they are: its sink is {kafka: NAME} without other options, "
                "decode and steps; to change records, read the cluster with the source 'kafka' and give "
                "the sink 'kafka' a connection"
            )
        fields = {name for _, name, _, _ in Formatter().parse(topic) if name}
        if "cluster" in fields and not self.alias:
            return (
                f"the name {topic!r} has {{cluster}}, and the cluster has no name; give 'alias', or a "
                "named connection"
            )
        if "topic" not in fields and len(self.topics) != 1:
            return (
                f"all topics would be copied into {topic!r}; give a name with {{topic}}, as in "
                "{cluster}.{topic}"
            )
        return None

    def system(self) -> System:
        """Return the mirror into the default connection, without a name."""
        return self.system_for("mirror", find_connection(None))

    def system_for(self, name: str, target: Connection) -> System:
        """Return both clusters."""
        return MirrorSystem(name, self, target)


def is_own(topic: str) -> bool:
    """Return whether a topic belongs to its cluster: Kafka's own, and the positions of imports.

    >>> is_own("__consumer_offsets"), is_own("penstock-positions"), is_own("orders")
    (True, True, False)
    """
    return topic.startswith("__") or topic == POSITIONS


def _compiled(given: str) -> str:
    try:
        re.compile(given)
    except re.error as error:
        raise ValueError(f"{given!r} is not a regular expression: {error}") from None
    return given
