"""Consumer groups: list, describe with the lag of each partition, reset, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from penstock.control.roles import Access, Role
from penstock.errors import ConfigError, TerminalError
from penstock.kafka import ResetPlan
from penstock.kafka.admin.groups import refuse_members
from penstock.kafka.kafka_errors import code_of
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import ConnectionName, Connections
from penstock.server.kafka.kafka_names import (
    DEFAULT_LIMIT,
    AuditLog,
    Cursor,
    GroupName,
    Limit,
    after_name,
    checked_group,
    checked_topic,
    page_by_name,
)
from penstock.server.kafka.message_range import reset_target
from penstock.server.problems import RefusedRequestError

Viewer = Annotated[Access, Depends(requires(Role.VIEWER))]
Operator = Annotated[Access, Depends(requires(Role.OPERATOR))]
Admins = Annotated[Access, Depends(requires(Role.ADMIN))]


class Reset(BaseModel):
    """Where a group is to go on; a dry run returns the plan and changes nothing."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(
        min_length=1,
        max_length=100,
        description="earliest, latest, an offset, +10, -10, a time or an age.",
    )
    topics: list[Annotated[str, Field(max_length=300)]] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="TOPIC or TOPIC:PARTITION; default: everything with a committed offset.",
    )
    dry_run: bool = False


def groups_router(connections: Connections, audit: AuditLog) -> APIRouter:
    """Return the routes of groups."""
    router = APIRouter(tags=["groups"], route_class=CheckedRoute)

    @router.get("/groups")
    def list_groups(
        _caller: Viewer,
        connection: ConnectionName = None,
        contains: Annotated[str, Query(max_length=255, description="Part of the name.")] = "",
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return groups by name."""
        first = after_name(cursor)
        with connections.admin(connection) as admin:
            groups = {group.name: group for group in admin.groups()}
        return page_by_name(groups, contains, first, limit, lambda name: asdict(groups[name]))

    @router.post("/groups/{group:path}/reset")
    def reset_group(
        caller: Operator, group: GroupName, body: Reset, connection: ConnectionName = None
    ) -> dict[str, Any]:
        """Plan new offsets of a group and, unless it is a dry run, commit them.

        Refused while the group has members: they would go on from their positions.
        """
        name = checked_group(group)
        target = reset_target(body.to)
        chosen = None if body.topics is None else [_chosen(text) for text in body.topics]
        with connections.admin(connection) as admin:
            plan = admin.plan_reset(name, target, chosen)
            if not body.dry_run:
                with _without_members():
                    refuse_members(f"resetting group {name!r}", plan.members)
                    admin.reset(plan)
                detail = {"to": body.to, "partitions": len(plan.moves), "connection": connection}
                audit(caller.user, "group.reset", name, **detail)
        return {**_plan_document(plan), "done": not body.dry_run}

    @router.get("/groups/{group:path}")
    def describe_group(
        _caller: Viewer, group: GroupName, connection: ConnectionName = None
    ) -> dict[str, Any]:
        """Return a group's members, and its committed offset, end and lag in each partition."""
        with connections.admin(connection) as admin:
            detail = admin.describe_group(checked_group(group))
        positions = [asdict(position) | {"lag": position.lag} for position in detail.positions]
        return {**asdict(detail), "positions": positions, "lag": detail.lag}

    @router.delete("/groups/{group:path}", status_code=204)
    def delete_group(caller: Admins, group: GroupName, connection: ConnectionName = None) -> None:
        """Delete a group with the offsets that it committed; refused while it has members."""
        name = checked_group(group)
        with connections.admin(connection) as admin, _without_members():
            admin.delete_group(name)
        audit(caller.user, "group.delete", name, connection=connection)

    return router


@contextmanager
def _without_members() -> Iterator[None]:
    """Give the refusal because of members its status."""
    try:
        yield
    except TerminalError as error:
        if code_of(error) is None:
            raise RefusedRequestError(409, str(error)) from error
        raise


def _plan_document(plan: ResetPlan) -> dict[str, Any]:
    moves = [{**asdict(move), "change": move.change, "note": move.note} for move in plan.moves]
    return {**asdict(plan), "moves": moves}


def _chosen(text: str) -> str | tuple[str, int]:
    topic, colon, partition = text.partition(":")
    if not colon:
        return checked_topic(topic)
    if not (partition.isascii() and partition.isdecimal() and len(partition) < 10):
        raise ConfigError(
            f"{text!r} is not a partition: write TOPIC or TOPIC:PARTITION, as trades:0"
        )
    return checked_topic(topic), int(partition)
