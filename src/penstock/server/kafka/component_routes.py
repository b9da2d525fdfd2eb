"""Components of pipelines with their JSON schemas, and the schema of whole definitions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from penstock.control.roles import Role
from penstock.errors import NotFoundError, nearest
from penstock.server.caller import requires
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.component_catalog import KINDS, ComponentCatalog

_BRIEF = ("kind", "name", "summary", "aliases", "error")


def components_router(catalog: ComponentCatalog) -> APIRouter:
    """Return the routes of components."""
    viewer = [Depends(requires(Role.VIEWER))]
    router = APIRouter(tags=["components"], route_class=CheckedRoute, dependencies=viewer)

    @router.get("/components")
    def list_components(
        kind: Annotated[str | None, Query(max_length=20, description="Only this kind.")] = None,
    ) -> dict[str, Any]:
        """Return all components, each with one line about it."""
        if kind is not None and kind not in KINDS:
            raise NotFoundError(f"there is no kind {kind!r}; {nearest(kind, KINDS)}")
        items = [each for each in catalog.components() if kind in (None, each["kind"])]
        brief = [{key: each[key] for key in _BRIEF if key in each} for each in items]
        return {"items": brief, "next": None}

    @router.get("/components/{kind}/{name}")
    def show_component(kind: str, name: str) -> dict[str, Any]:
        """Return a component with the JSON schema of its options; an alias is allowed."""
        if kind not in KINDS:
            raise NotFoundError(f"there is no kind {kind[:100]!r}; {nearest(kind[:100], KINDS)}")
        items = [each for each in catalog.components() if each["kind"] == kind]
        for each in items:
            if name in (each["name"], *each["aliases"]):
                return each
        known = [each["name"] for each in items]
        raise NotFoundError(f"there is no {kind} {name[:100]!r}; {nearest(name[:100], known)}")

    @router.get("/definition-schema")
    def definition_schema() -> dict[str, Any]:
        """Return the JSON schema of definitions, for editors."""
        return catalog.definition()

    return router
