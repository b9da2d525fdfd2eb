"""`penstock connectors offsets`: how far connectors are, in the form of Kafka Connect's REST API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.api_client.server_client import in_path
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.errors import ConfigError

app = typer.Typer(
    no_args_is_help=True, help="The offsets of a connector: get; set and reset while it is stopped."
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a connector.")]


@app.command("get")
def get_offsets(
    name: Name, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Show the offsets: of a sink those of its group, of a source how far each part was read.

    For example: penstock connectors offsets get orders
    """
    with client_of(server, ca) as client:
        found = client.connect("GET", _path(name))
    if as_json:
        return print_json(found)
    rows = [[_shown(each["partition"]), _shown(each["offset"])] for each in found["offsets"]]
    return print_table(["partition", "offset"], rows) if rows else say(f"{name} has no offsets")


@app.command("set")
def set_offsets(
    name: Name,
    partition: Annotated[
        str | None,
        typer.Argument(metavar="[PARTITION]", help="A JSON object, as `offsets get` shows it."),
    ] = None,
    offset: Annotated[
        str | None, typer.Argument(metavar="[OFFSET]", help="A JSON object; null removes it.")
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Instead: what `offsets get --json` printed."),
    ] = None,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Set offsets of a connector that is stopped; the partitions that are not given keep theirs.

    For example: penstock connectors offsets set orders '{"filename":"/data/in.txt"}' '{"position":14}'
    """
    body = _body(partition, offset, file)
    with client_of(server, ca) as client:
        reply = client.connect("PATCH", _path(name), body)
    say(f"{name}: {reply['message']}")


@app.command("reset")
def reset_offsets(
    name: Name, *, yes: YesOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Remove all offsets of a connector that is stopped: it starts over.

    For example: penstock connectors offsets reset orders
    """
    with client_of(server, ca) as client:
        if not yes:
            ask_first(f"Remove all offsets of the connector {name}?", "nothing was changed")
        reply = client.connect("DELETE", _path(name))
    say(f"{name}: {reply['message']}")


def _body(partition: str | None, offset: str | None, file: Path | None) -> Any:
    if file is not None and partition is None:
        try:
            return json.loads(file.read_bytes())
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ConfigError(f"{file} is not JSON: {error}") from None
    if file is not None or partition is None or offset is None:
        raise ConfigError("give a partition and its offset, or --from FILE for several")
    return {"offsets": [{"partition": _object(partition), "offset": _object(offset)}]}


def _object(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{text!r:.200} is not JSON: {error}") from None
    if not isinstance(found, dict | None):
        raise ConfigError(f"{text!r:.200} is not a JSON object, as in '{{\"position\": 14}}'")
    return found


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _path(name: str) -> str:
    return f"/connectors/{in_path(name)}/offsets"
