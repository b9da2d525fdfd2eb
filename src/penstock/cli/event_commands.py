"""`penstock events`: what happened to deployments, and what happens next."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer

from penstock.api_client.server_client import ServerClient
from penstock.cli.deployment_table import moment
from penstock.cli.options import JsonOption
from penstock.cli.output import say, write
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.config.printable import printable, printable_json
from penstock.errors import TransientError

_RETRY, _AGAIN = 2.0, 0.2
_MOST = 1000


def events(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: all.")] = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until Ctrl-C.")
    ] = False,
    tail: Annotated[
        int, typer.Option("--tail", "-n", min=0, help="How many of the stored ones: the newest.")
    ] = 50,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Show the events of one deployment or of all, the oldest first.

    For example: penstock events orders -f
    """
    with client_of(server, ca) as client:
        found = newest_events(client, name, tail) if tail else []
        for each in found:
            _print(each, as_json)
        if follow:
            last = found[-1]["number"] if found else None
            for each in followed(client, name, last):
                _print(each, as_json)


def newest_events(client: ServerClient, name: str | None, most: int) -> list[dict[str, Any]]:
    """Return the last events, the oldest first."""
    if most > _MOST:
        return list(deque(client.items("/events", deployment=name), maxlen=most))
    found: list[dict[str, Any]] = client.get("/events", deployment=name, tail=most)["items"]
    return found


def followed(client: ServerClient, name: str | None, last: int | None) -> Iterator[dict[str, Any]]:
    """Yield events after a number as they happen; a server that goes away is waited for."""
    return followed_stream(client, "/events", last, deployment=name)


def followed_stream(
    client: ServerClient, path: str, last: int | None, **query: Any
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a stream after a number as they come; it is opened again where it ends."""
    is_away = False
    while True:
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        try:
            for line in client.stream(path, headers, **query):
                is_away = False
                if line.startswith(b"data:"):
                    row = json.loads(line[5:])
                    last = row["number"]
                    yield row
            time.sleep(_AGAIN)  # the server ends streams now and then: rights may have changed
        except TransientError as error:
            if not is_away:
                say(f"{error}; waiting for it")
            is_away = True
            time.sleep(max(_RETRY, error.retry_after))


def event_line(event: dict[str, Any]) -> str:
    """Return an event as one line."""
    parts = (moment(event["at"]), event["deployment"], event["kind"], event["text"])
    return "  ".join(printable(str(part)) for part in parts if part)


def _print(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write(printable_json(orjson.dumps(event)) + b"\n")
    else:
        write(event_line(event).encode() + b"\n")
