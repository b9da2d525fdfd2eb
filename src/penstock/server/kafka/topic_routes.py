"""Topics: list, describe, create, change and delete."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from penstock.control.roles import Access, Role
from penstock.errors import ConfigError
from penstock.kafka import Admin
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import ConnectionName, Connections
from penstock.server.kafka.kafka_names import (
    DEFAULT_LIMIT,
    AuditLog,
    Cursor,
    Limit,
    TopicName,
    after_name,
    checked_topic,
    page_by_name,
    refuse_internal,
)

Viewer = Annotated[Access, Depends(requires(Role.VIEWER))]
Admins = Annotated[Access, Depends(requires(Role.ADMIN))]
SettingName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._-]+$")]
# NUL would end the text inside of librdkafka.
SettingText = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
SettingValue = SettingText | bool | int | float | list[SettingText]


class NewTopic(BaseModel):
    """A topic to create; what is not given is the broker's default."""

    model_config = ConfigDict(extra="forbid")

    name: str
    partitions: int | None = Field(default=None, ge=1, le=100_000)
    replication: int | None = Field(default=None, ge=1, le=1000)
    config: dict[SettingName, SettingValue] = {}


class TopicChange(BaseModel):
    """Changes of a topic: settings to set, settings to unset (null), the new number of partitions."""

    model_config = ConfigDict(extra="forbid")

    config: dict[SettingName, SettingValue | None] = {}
    partitions: int | None = Field(default=None, ge=1, le=100_000)


def topics_router(connections: Connections, audit: AuditLog) -> APIRouter:
    """Return the routes of topics."""
    router = APIRouter(tags=["topics"], route_class=CheckedRoute)

    @router.get("/topics")
    def list_topics(
        _caller: Viewer,
        connection: ConnectionName = None,
        internal: bool = False,
        contains: Annotated[str, Query(max_length=249, description="Part of the name.")] = "",
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return topics by name, those of Kafka itself on request."""
        first = after_name(cursor)
        with connections.admin(connection) as admin:
            topics = {topic.name: topic for topic in admin.topics(internal=internal)}
        return page_by_name(topics, contains, first, limit, lambda name: asdict(topics[name]))

    @router.post("/topics", status_code=201)
    def create_topic(
        caller: Admins, body: NewTopic, connection: ConnectionName = None
    ) -> dict[str, Any]:
        """Create a topic, and return it when it can be used."""
        name = refuse_internal(body.name)
        with connections.admin(connection) as admin:
            admin.create_topic(name, body.partitions, body.replication, body.config)
            audit(
                caller.user,
                "topic.create",
                name,
                connection=connection,
                **body.model_dump(exclude={"name"}, exclude_defaults=True),
            )
            return described(admin, name, every_setting=False)

    @router.get("/topics/{topic}")
    def describe_topic(
        _caller: Viewer,
        topic: TopicName,
        connection: ConnectionName = None,
        settings: Annotated[bool, Query(description="Every setting, with its source.")] = False,
    ) -> dict[str, Any]:
        """Return a topic's partitions with their offsets, and its settings."""
        with connections.admin(connection) as admin:
            return described(admin, checked_topic(topic), every_setting=settings)

    @router.patch("/topics/{topic}")
    def change_topic(
        caller: Admins, topic: TopicName, body: TopicChange, connection: ConnectionName = None
    ) -> dict[str, Any]:
        """Change settings of a topic, and add partitions; other settings do not change."""
        name = refuse_internal(topic)
        if not body.config and body.partitions is None:
            raise ConfigError(
                "nothing to change: give 'config' (a value sets, null unsets) or 'partitions'"
            )
        with connections.admin(connection) as admin:
            require_more(admin, name, body.partitions)
            if body.config:
                admin.alter_topic(name, body.config)
                audit(caller.user, "topic.config", name, connection=connection, config=body.config)
            if body.partitions is not None:
                admin.add_partitions(name, body.partitions)
                detail = {"partitions": body.partitions, "connection": connection}
                audit(caller.user, "topic.partitions", name, **detail)
            return described(admin, name, every_setting=False)

    @router.delete("/topics/{topic}", status_code=204)
    def delete_topic(caller: Admins, topic: TopicName, connection: ConnectionName = None) -> None:
        """Delete a topic with every record in it."""
        name = refuse_internal(topic)
        with connections.admin(connection) as admin:
            admin.delete_topic(name)
        audit(caller.user, "topic.delete", name, connection=connection)

    return router


def require_more(admin: Admin, name: str, partitions: int | None) -> None:
    """Refuse a number of partitions that is not greater, before anything is changed."""
    before = len(admin.partitions([name]))
    if partitions is not None and partitions <= before:
        raise ConfigError(
            f"topic {name!r} has {before} partitions, and {partitions} were asked for: partitions can "
            f"only be added; give at least {before + 1}"
        )


def described(admin: Admin, name: str, *, every_setting: bool) -> dict[str, Any]:
    """Return a topic: partitions with the number of offsets in each, and its own settings."""
    detail = asdict(admin.describe_topic(name))
    for partition in detail["partitions"]:
        partition["offsets"] = partition["latest"] - partition["earliest"]
    if every_setting:
        detail["settings"] = [asdict(setting) for setting in admin.topic_settings(name)]
    return detail
