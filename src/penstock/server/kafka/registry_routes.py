"""Subjects of the schema registry: list, versions, schemas, compatibility, delete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from penstock.control.roles import Access, Role
from penstock.errors import ConfigError
from penstock.formats.registry import Registered, Registry
from penstock.formats.registry.registry_model import Level
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import Connections, Turns
from penstock.server.kafka.kafka_names import (
    DEFAULT_LIMIT,
    AuditLog,
    Cursor,
    Limit,
    after_name,
    page_by_name,
)

Viewer = Annotated[Access, Depends(requires(Role.VIEWER))]
Admins = Annotated[Access, Depends(requires(Role.ADMIN))]
Subject = Annotated[str, Path(alias="subject", description="The subject's name.")]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]
SchemaId = Annotated[int, Path(alias="id", ge=0, le=2**31 - 1)]

_PATIENCE = 10.0


class Compatibility(BaseModel):
    """What new versions of a subject must keep."""

    model_config = ConfigDict(extra="forbid")

    compatibility: Level = Field(description="The level.")


def registry_router(connections: Connections, audit: AuditLog) -> APIRouter:
    """Return the routes of the schema registry."""
    turns = Turns(_PATIENCE)

    def turn() -> Iterator[None]:
        with turns.taken("the schema registry"):
            yield

    router = APIRouter(
        tags=["schema registry"], route_class=CheckedRoute, dependencies=[Depends(turn)]
    )

    @router.get("/subjects")
    def list_subjects(
        _caller: Viewer,
        contains: Annotated[str, Query(max_length=500, description="Part of the name.")] = "",
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return subjects by name."""
        first = after_name(cursor)
        subjects = sorted(connections.fresh_registry().subjects())
        return page_by_name(subjects, contains, first, limit, lambda name: {"name": name})

    @router.get("/schemas/{id}")
    def show_schema(_caller: Viewer, schema_id: SchemaId) -> dict[str, Any]:
        """Return the schema with an id."""
        schema = connections.fresh_registry().schema(schema_id)
        return {"id": schema_id, **_schema(schema)}

    @router.get("/subjects/{subject:path}/versions/{version}")
    def show_version(_caller: Viewer, subject: Subject, version: Version) -> dict[str, Any]:
        """Return one version of a subject."""
        return _registered(connections.fresh_registry().version(_checked(subject), version))

    @router.put("/subjects/{subject:path}/compatibility")
    def set_compatibility(caller: Admins, subject: Subject, body: Compatibility) -> dict[str, Any]:
        """Set what new versions of a subject must keep."""
        name = _checked(subject)
        registry = connections.fresh_registry()
        registry.versions(name)
        registry.set_compatibility(body.compatibility, name)
        audit(caller.user, "subject.compatibility", name, compatibility=body.compatibility)
        return _described(registry, name)

    @router.get("/subjects/{subject:path}")
    def describe_subject(_caller: Viewer, subject: Subject) -> dict[str, Any]:
        """Return the versions of a subject, its compatibility, and the newest schema."""
        return _described(connections.fresh_registry(), _checked(subject))

    @router.delete("/subjects/{subject:path}")
    def delete_subject(
        caller: Admins,
        subject: Subject,
        permanent: Annotated[
            bool, Query(description="Also for readers; after a deletion that is not permanent.")
        ] = False,
    ) -> dict[str, Any]:
        """Delete a subject with all versions; return their numbers."""
        name = _checked(subject)
        versions = connections.fresh_registry().delete(name, permanent=permanent)
        audit(caller.user, "subject.delete", name, versions=versions, permanent=permanent)
        return {"deleted": versions}

    return router


def _described(registry: Registry, subject: str) -> dict[str, Any]:
    versions = sorted(registry.versions(subject))
    return {
        "name": subject,
        "versions": versions,
        "compatibility": registry.compatibility(subject),
        "latest": _registered(registry.version(subject, versions[-1])) if versions else None,
    }


def _registered(registered: Registered) -> dict[str, Any]:
    place = {"subject": registered.subject, "version": registered.version, "id": registered.id}
    return {**place, **_schema(registered.schema)}


def _schema(schema: Any) -> dict[str, Any]:
    references = [reference.as_json() for reference in schema.references]
    return {"type": schema.kind, "schema": schema.text, "references": references}


def _checked(subject: str) -> str:
    if not 1 <= len(subject) <= 500 or not subject.isprintable():
        raise ConfigError(
            f"{subject[:100]!r} is not the name of a subject; allowed: 1 to 500 printable characters"
        )
    return subject
