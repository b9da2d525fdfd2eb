"""The Kafka side of the API in a small app: the caller's role is in a header, the audit log in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.testclient import TestClient

from penstock.control.roles import Access, read_grants
from penstock.errors import PenstockError
from penstock.server.problems import problem


@dataclass
class Api:
    """Requests to an app with some routers, as an admin unless another role is given."""

    client: TestClient
    changes: list[tuple[str, str, str, dict[str, Any]]] = field(default_factory=list)

    def audit(self, who: str, action: str, target: str, **detail: Any) -> None:
        self.changes.append((who, action, target, detail))

    def __call__(self, method: str, path: str, role: str = "admin", **given: Any) -> Any:
        headers = {"x-role": role, "content-type": "application/json"}
        return self.client.request(method, path, headers=headers, **given)

    def get(self, path: str, role: str = "viewer", **params: Any) -> Any:
        """Return the JSON of a reply that must be 200."""
        reply = self("GET", path, role, params=params)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def refused(self, method: str, path: str, **given: Any) -> tuple[int, str]:
        """Return the status and the text of a reply that must be a problem."""
        reply = self(method, path, **given)
        assert reply.headers["content-type"] == "application/problem+json", reply.text
        return reply.status_code, reply.json()["detail"]


def app_of(*routers: APIRouter) -> FastAPI:
    """Return an app with these routers, the errors of the API, and callers by a header."""
    app = FastAPI()
    for router in routers:
        app.include_router(router)

    @app.exception_handler(PenstockError)
    def _failed(_request: Request, error: PenstockError) -> Any:
        return problem(error)

    @app.middleware("http")
    async def _access(request: Request, go_on: Any) -> Any:
        if role := request.headers.get("x-role"):
            request.state.access = Access("ann", read_grants([role]))
        return await go_on(request)

    return app
