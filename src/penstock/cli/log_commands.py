"""`penstock logs`: what the runs of a deployment logged, on whichever worker, and what they log next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer

from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli.deployment_table import moment
from penstock.cli.event_commands import followed_stream
from penstock.cli.output import say, write
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.config.printable import printable, printable_json
from penstock.errors import ConfigError, nearest

_TAIL, _MOST = 100, 1000
_OUTPUTS = ("text", "json")


def logs(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A deployment.")] = None,
    *,
    worker: Annotated[
        str | None, typer.Option(metavar="ID", help="What a worker itself logged, instead.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until Ctrl-C.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option(
            min=0, max=_MOST, help=f"The newest lines; default: {_TAIL}, with --since: all."
        ),
    ] = None,
    level: Annotated[
        str | None, typer.Option(help="The lowest level: debug, info, warning, error, critical.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only newer lines, as in 30s, 10m, 2h, 1d.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Show the logs of a deployment, or of a worker, the oldest line first.

    For example: penstock logs orders -f --level warning
    """
    if output not in _OUTPUTS:
        raise ConfigError(f"--output is {output!r}; {nearest(output, list(_OUTPUTS))}")
    path = _path(name, worker)
    with client_of(server, ca) as client:
        last = None
        for line in _stored(client, path, _tail(tail, since), level=level, since=since):
            last = line["number"]
            _print(line, output)
        if follow:
            if last is None:
                last = None if tail == 0 else 0
            for line in followed_stream(client, f"{path}/stream", last, level=level, since=since):
                _print(line, output)
        elif last is None and tail != 0:
            say("there are no such lines")


def _path(name: str | None, worker: str | None) -> str:
    if (name is None) == (worker is None):
        given = "neither was given" if name is None else f"given: {name!r} and {worker!r}"
        raise ConfigError(f"give the name of a deployment, or --worker with an id; {given}")
    return (
        f"/deployments/{in_path(name)}/logs" if name else f"/workers/{in_path(worker or '')}/logs"
    )


def _tail(given: int | None, since: str | None) -> int | None:
    return _TAIL if given is None and since is None else given


def _stored(
    client: ServerClient, path: str, tail: int | None, **query: Any
) -> Iterator[dict[str, Any]]:
    """Yield the newest lines, or all."""
    if tail is None:
        yield from client.items(path, **query)
    elif tail:
        yield from client.get(path, tail=tail, **query)["items"]
    else:
        client.get(path, limit=1, **query)  # a wrong name is an error also without lines


def log_line(line: dict[str, Any]) -> str:
    """Return a line as text: when, level, event, fields; a traceback is indented below it."""
    fields = dict(line["fields"])
    exception = str(fields.pop("exception", ""))
    shown = [f"{name}={_value(value)}" for name, value in fields.items()]
    head = (moment(line["at"]), line["level"].ljust(8), line["event"], *shown)
    below = [f"    {each}" for each in exception.splitlines()]
    return "\n".join([printable("  ".join(head)), *(printable(each) for each in below)])


def _value(value: Any) -> str:
    if isinstance(value, str) and value and not any(each.isspace() for each in value):
        return value
    return orjson.dumps(value).decode()


def _print(line: dict[str, Any], output: str) -> None:
    if output == "json":
        write(printable_json(orjson.dumps(line)) + b"\n")
    else:
        write(log_line(line).encode() + b"\n")
