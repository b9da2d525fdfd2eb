"""The application of the server: routes, errors in one form, the access check in front.

Run it with uvicorn: `uvicorn.run(create_app(store, settings), proxy_headers=False, server_header=False)`.
Before the server stops, `app_state.end_streams(app)` ends the streams.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from penstock.connect.connectors import CATALOG
from penstock.control.store import ControlStore
from penstock.errors import PenstockError, Problem
from penstock.server import (
    deployment_actions,
    deployment_routes,
    event_routes,
    health_routes,
    log_routes,
    user_routes,
    worker_routes,
)
from penstock.server.access import AccessCheck
from penstock.server.app_state import end_streams
from penstock.server.authentication import Authenticator
from penstock.server.connect.connect_api import ConnectApi
from penstock.server.connect.connect_dispatch import ROOTS, is_connect, path_parts
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.event_feed import EventFeed
from penstock.server.openapi_page import POLICY, openapi_page
from penstock.server.problems import http_problem, invalid_request, problem
from penstock.server.settings import ServerSettings

PREFIX = "/api/v1"
DOCS = "/api/docs"
"""The page for people: a browser that opens the root is redirected to it."""
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_MOST_PROBLEMS = 20
_TEXTS = {
    404: "there is no such path; /api/docs has them all",
    405: "the path does not have this method; /api/docs has them all",
}


def create_app(
    store: ControlStore, settings: ServerSettings, routers: Sequence[APIRouter] = ()
) -> FastAPI:
    """Return the application over a store; `routers` are more routes below /api/v1."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        end_streams(app)

    app = FastAPI(
        title="Penstock",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    users = Authenticator(store, settings)
    app.state.store, app.state.settings, app.state.users = store, settings, users
    app.state.feed = EventFeed("events", store.events.after, store.events.last, settings.streams)
    app.state.log_feed = EventFeed("logs", store.logs.after, store.logs.last, settings.streams)
    app.add_middleware(AccessCheck, store=store, settings=settings, users=users)
    _handle_errors(app)
    app.include_router(health_routes.router)
    app.include_router(_docs())
    modules = (
        deployment_routes, deployment_actions, event_routes, log_routes, worker_routes, user_routes,
    )  # fmt: skip
    for router in (*(module.router for module in modules), *routers):
        app.include_router(router, prefix=PREFIX)
    _add_connect(app, store, settings)
    return app


def _add_connect(app: FastAPI, store: ControlStore, settings: ServerSettings) -> None:
    """Add the paths of Kafka Connect, which have a form of their own."""
    connect = ConnectApi(store, CATALOG, settings.connect)

    async def root(request: Request) -> Response:
        if request.method in ("GET", "HEAD") and _is_browser(request.headers.get("accept", "")):
            return RedirectResponse(DOCS, 302, headers={"Vary": "Accept"})
        return await connect.answer(request)

    app.add_route("/", root, methods=_METHODS, include_in_schema=False)
    for path in (path for name in ROOTS for path in (f"/{name}", f"/{name}/{{rest:path}}")):
        app.add_route(path, connect.answer, methods=_METHODS, include_in_schema=False)


def _is_browser(accept: str) -> bool:
    """Return whether a client asks for a page: tools of Connect accept JSON, or anything."""
    return any(kind.partition(";")[0].strip().lower() == "text/html" for kind in accept.split(","))


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(PenstockError)
    def _penstock(_request: Request, error: Exception) -> Response:
        return problem(cast("PenstockError", error))

    @app.exception_handler(RequestValidationError)
    def _invalid(_request: Request, error: Exception) -> Response:
        given = cast("RequestValidationError", error)
        return invalid_request([_problem_of(each) for each in given.errors()[:_MOST_PROBLEMS]])

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: Exception) -> Response:
        given = cast("HTTPException", error)
        if given.status_code in (404, 405) and is_connect(path_parts(request.scope["raw_path"])):
            return ConnectError(given.status_code).reply()
        text = _TEXTS.get(given.status_code, str(given.detail))
        return http_problem(given.status_code, text, given.headers)


def _problem_of(error: dict[str, object]) -> Problem:
    """Return an error of pydantic without the value that was given."""
    given = cast("tuple[str | int, ...]", error["loc"])
    where = tuple(part[:100] if isinstance(part, str) else part for part in given)
    if error["type"] == "json_invalid":
        return Problem(("body",), "it is not JSON")
    if error["type"] == "extra_forbidden":
        return Problem(where, "this key is unknown")
    return Problem(where, str(error["msg"]))


def _docs() -> APIRouter:
    router = APIRouter()

    @router.get(DOCS, include_in_schema=False, response_class=HTMLResponse)
    def docs(request: Request) -> HTMLResponse:
        page = openapi_page(request.app.openapi())
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    return router
