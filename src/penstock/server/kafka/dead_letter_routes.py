"""Dead letters of a deployment: list, show and drop. `replay_routes` asks a worker for replays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Response

from penstock.control.roles import Role
from penstock.engine.dead_letters.dead_letter_choice import Choice, Stage, named
from penstock.engine.dead_letters.letter import DeadLetter
from penstock.errors import ConfigError, NotFoundError
from penstock.server.caller import Caller
from penstock.server.kafka.checked_route import CheckedRoute
from penstock.server.kafka.connections import Connections, Turns
from penstock.server.kafka.dead_letter_topic import FindDeployed, letters_of
from penstock.server.kafka.kafka_names import DEFAULT_LIMIT, AuditLog, Cursor, Limit
from penstock.server.kafka.kafka_statuses import with_status
from penstock.server.kafka.letter_choice import LetterFilter, LetterSelection
from penstock.server.kafka.message_values import ValueReader
from penstock.server.paging import after, page

Deployment = Annotated[str, Path(alias="name", description="The deployment's name.")]
LetterId = Annotated[str, Path(alias="id", max_length=400, description="As the list has it.")]
_BYTES = 1_000_000
_PATIENCE = 10.0


def dead_letters_router(find: FindDeployed, connections: Connections, audit: AuditLog) -> APIRouter:
    """Return the routes of dead letters; `find` returns a deployment for a caller."""
    router = APIRouter(
        prefix="/deployments/{name}/dead-letters", tags=["dead letters"], route_class=CheckedRoute
    )
    dropping = Lock()
    turns = Turns(_PATIENCE)

    @contextmanager
    def reading() -> Iterator[None]:
        with with_status(), turns.taken("dead letters"):
            yield

    @router.get("")
    def list_letters(
        caller: Caller,
        name: Deployment,
        *,
        stage: Stage | None = None,
        error: Annotated[str | None, Query(max_length=1000)] = None,
        since: Annotated[str | None, Query(max_length=100)] = None,
        until: Annotated[str | None, Query(max_length=100)] = None,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """Return the dead letters that were neither replayed nor dropped, the oldest first."""
        deployed = find(caller, name, Role.VIEWER)
        wanted = LetterFilter(stage=stage, error=error, since=since, until=until).choice()
        first = _first(cursor)
        with reading():
            letters = letters_of(deployed, connections.find).waiting()
        ids = {letter.full_id: shown for shown, letter in named(letters)}
        later = sorted((x for x in wanted.of(letters) if _key(x) > first), key=_key)
        return page(later[: limit + 1], limit, _key, lambda x: _summary(x, ids[x.full_id]))

    @router.get("/{id}")
    def show_letter(caller: Caller, name: Deployment, letter_id: LetterId) -> Response:
        """Return one dead letter with the whole record."""
        deployed = find(caller, name, Role.VIEWER)
        with reading():
            waiting = letters_of(deployed, connections.find, letter_id).waiting()
        document = _document(_chosen(Choice((letter_id,)), waiting)[-1])
        return Response(orjson.dumps(document), media_type="application/json")

    @router.post("/drop")
    def drop_letters(caller: Caller, name: Deployment, body: LetterSelection) -> dict[str, int]:
        """Mark dead letters as dropped; the records stay in the topic."""
        deployed = find(caller, name, Role.OPERATOR)
        wanted = body.selected("drop")
        with reading(), dropping:
            log = letters_of(deployed, connections.find)
            dropped = log.drop(_chosen(wanted, log.waiting()))
        detail = body.model_dump(mode="json", exclude_defaults=True)
        audit(caller.user, "dead-letters.drop", name, dropped=dropped, **detail)
        return {"dropped": dropped}

    return router


def _chosen(choice: Choice, letters: list[DeadLetter]) -> list[DeadLetter]:
    known = {name for letter in letters for name in (letter.id, letter.full_id)}
    if missing := [name for name in choice.ids if name not in known]:
        raise NotFoundError(
            f"there is no dead letter {missing[0]!r} that waits; list them to see their ids"
        )
    return choice.of(letters)


def _key(letter: DeadLetter) -> list[Any]:
    at = letter.timestamp.timestamp() if letter.timestamp else 0.0
    where = [letter.topic, letter.partition, letter.offset, letter.epoch, letter.batch]
    return [at, *where]


def _first(cursor: str | None) -> list[Any]:
    key = after(cursor)
    if key is None:
        return []
    kinds = (float, str, int, int, int, int)
    if isinstance(key, list) and [type(each) for each in key] == list(kinds):
        return key
    raise ConfigError(
        f"{str(cursor)[:40]!r} is not a cursor of dead letters; give the 'next' of the page before"
    )


def _summary(letter: DeadLetter, shown_id: str) -> dict[str, Any]:
    return {**letter.described(), "id": shown_id}


def _document(letter: DeadLetter) -> dict[str, Any]:
    values = ValueReader()
    return {
        **_summary(letter, letter.id),
        "key": values.read(letter.key, letter.topic).document(_BYTES),
        "value": values.read(letter.value, letter.topic).document(_BYTES),
        "headers": [
            {"name": name, "value": values.read(data, letter.topic).document(_BYTES)}
            for name, data in letter.headers
        ],
    }
