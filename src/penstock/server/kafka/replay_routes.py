"""Replays of dead letters: asked for here, run by a worker, which has Spark."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from penstock.control.roles import Access, Role
from penstock.control.store.control_store import ControlStore
from penstock.control.store.deployments import refuse_deleted
from penstock.control.store.rows import Kind, ReplayRow
from penstock.errors import ConfigError, NotFoundError
from penstock.server.app_state import GREATEST
from penstock.server.caller import Caller
from penstock.server.deployment_access import find_for
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.kafka_names import DEFAULT_LIMIT, Cursor, Limit
from penstock.server.kafka.letter_choice import LetterSelection
from penstock.server.kafka.message_writing import Base64, payload
from penstock.server.paging import after, page
from penstock.server.problems import RefusedRequestError

Deployment = Annotated[str, Path(alias="name", description="The deployment's name.")]
Number = Annotated[
    int, Path(alias="id", ge=1, le=GREATEST, description="As the reply to the request has it.")
]
_LARGEST = 1_000_000
_PATH = "/deployments/{name}/dead-letters"


class ReplayRequest(LetterSelection):
    """Which dead letters to replay, and for one that is named by its id another value.

    A text is written as it is, other JSON as JSON. Of a flow it is the payload of the message.
    """

    value: Any = None
    value_base64: Base64 | None = None
    take_over: bool = Field(
        default=False,
        description="Also finish replays that were started with another state folder and have not "
        "ended; make sure that they are not running any more.",
    )

    def data(self) -> bytes | None:
        """Return the bytes of the other value."""
        try:
            data = payload(self.value, self.value_base64, "value")
        except (ValueError, RecursionError) as error:
            raise ConfigError(str(error)) from None
        if data is not None and len(self.ids) != 1:
            raise ConfigError(
                f"another value is for one dead letter, but {len(self.ids)} are named: name one by its id"
            )
        if data is not None and len(data) > _LARGEST:
            raise RefusedRequestError(
                413,
                f"the value has {len(data)} bytes; at most {_LARGEST} are stored with a request",
            )
        return data

    def stored(self) -> dict[str, Any]:
        """Return the request without the value."""
        values = {"value", "value_base64"}
        return self.model_dump(mode="json", exclude_defaults=True, exclude=values)


def replays_router(store: ControlStore) -> APIRouter:
    """Return the routes of replays; include them before those of dead letters, whose ids are any text."""
    router = APIRouter(prefix=_PATH, tags=["dead letters"], route_class=CheckedRoute)

    @router.post("/replay", status_code=202)
    def replay_letters(
        caller: Caller, name: Deployment, body: ReplayRequest, request: Request, response: Response
    ) -> dict[str, Any]:
        """Ask for a replay: a worker runs the dead letters through the deployment's pipeline again.

        The worker that runs the deployment takes it, at the side of the running pipeline; any worker if
        none does. The reply names the request, whose state and outcome are at `Location`. A worker that
        dies is followed by another one, which finishes what was begun.
        """
        _require(store, caller, name)
        body.selected("replay")
        data = body.data()
        sealed = None if data is None else store.secrets.sealed_record(name, data)
        with store.change():
            _require(store, caller, name)  # it may have changed since
            try:
                number = store.replays.add(name, body.stored(), sealed, by=caller.user)
            except ConfigError as error:
                raise RefusedRequestError(409, str(error)) from None
            detail = {**body.stored(), "corrected": data is not None, "replay": number}
            store.audit.add(caller.user, "dead-letters.replay", name, **detail)
            row = _find(store, name, number)
        path = request.scope["path"].removesuffix("/replay")
        response.headers["Location"] = f"{quote(path)}/replays/{number}"
        return _shown(row)

    @router.get("/replays")
    def list_replays(
        caller: Caller, name: Deployment, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
    ) -> dict[str, Any]:
        """Return the replays that were asked for, the newest first; of those that ended the last 100."""
        find_for(store, caller, name, Role.VIEWER)
        rows = store.replays.before(name, _before(cursor), limit + 1)
        return page(rows, limit, lambda row: row.number, _shown)

    @router.get("/replays/{id}")
    def show_replay(caller: Caller, name: Deployment, number: Number) -> dict[str, Any]:
        """Return one replay: its state (pending, running, done, failed), and what became of the letters.

        `outcome` has the numbers of letters that were replayed, rows that were written, letters that
        failed again (they are new dead letters), letters that another replay or drop took before, and
        letters of interrupted replays that were finished first; `elsewhere` says where replays with
        another state folder were begun and have not ended (`take_over`).
        """
        find_for(store, caller, name, Role.VIEWER)
        return _shown(_find(store, name, number))

    return router


def _require(store: ControlStore, caller: Access, name: str) -> None:
    row = find_for(store, caller, name, Role.OPERATOR)
    refuse_deleted(row)
    if row.kind is Kind.CONNECTOR:
        raise RefusedRequestError(
            501,
            f"{name!r} is a connector, and the records of its dead letter queue are not replayed: "
            "produce them to a topic that it reads",
        )


def _find(store: ControlStore, name: str, number: int) -> ReplayRow:
    if (row := store.replays.get(name, number)) is None:
        raise NotFoundError(
            f"there is no replay {number} of {name!r}; the last ones are listed by "
            f"{_PATH.format(name=name)}/replays"
        )
    return row


def _before(cursor: str | None) -> int | None:
    key = after(cursor)
    if key is None or (type(key) is int and 0 <= key <= GREATEST):
        return key
    raise ConfigError(
        f"{str(cursor)[:40]!r} is not a cursor of replays; give the 'next' of the page before"
    )


def _shown(row: ReplayRow) -> dict[str, Any]:
    return {
        "id": row.number,
        "state": row.state.value,
        "wanted": row.wanted,
        "at": row.at,
        "by": row.by,
        "worker": row.worker or None,
        "attempts": row.attempts,
        "started": row.started,
        "ended": row.ended,
        "outcome": row.outcome,
        "error": row.error,
    }
