"""`penstock offsets`: how far imports have read their systems; set and reset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
import typer

from penstock.cli.options import JsonOption, YesOption, connection_of
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.errors import ConfigError
from penstock.imports.position_editing import (
    parse_place,
    parse_position,
    read_positions,
    set_positions,
)
from penstock.pipeline.importing import Position

app = typer.Typer(
    no_args_is_help=True, help="How far imports have read their systems: list, set and reset."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The pipeline's name.")]
Part = Annotated[
    str, typer.Argument(metavar="PART", help="The part, as `penstock offsets list` shows it.")
]


@app.command("list")
def list_offsets(context: typer.Context, name: Name, as_json: JsonOption = False) -> None:
    """Show the position of each part (table, file, queue) of an import.

    For example: penstock offsets list shop
    """
    positions = read_positions(connection_of(context), name)
    if as_json:
        parts = [
            {"partition": msgspec.json.decode(place), "offset": position}
            for place, position in sorted(positions.items())
        ]
        return print_json({"offsets": parts})
    rows = [(place, _text(position)) for place, position in sorted(positions.items())]
    print_table(("part", "position"), rows)
    return say(f"{name}: {len(rows)} parts") if rows else say(f"{name} has no positions")


@app.command("set")
def set_offset(
    context: typer.Context,
    name: Name,
    part: Part,
    position: Annotated[
        str, typer.Argument(metavar="POSITION", help="The new position, a JSON object.")
    ],
    new: Annotated[
        bool, typer.Option("--new", help="Also for a part that has no position yet.")
    ] = False,
) -> None:
    """Set the position of one part; a running import goes on from there.

    For example: penstock offsets set shop '{"table":"orders"}' '{"incrementing":4711}'
    """
    connection, place, wanted = connection_of(context), parse_place(part), parse_position(position)
    if not new:
        _require_known(
            name, [place], read_positions(connection, name), "; --new sets it all the same"
        )
    set_positions(connection, name, {place: wanted})
    say(f"{name}: {place} is read from {position}")


@app.command("reset")
def reset_offsets(
    context: typer.Context,
    name: Name,
    part: Annotated[
        str | None, typer.Argument(metavar="[PART]", help="One part; default: all of them.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Forget positions: the parts are read from the start, and what is in the topic comes again.

    For example: penstock offsets reset shop '{"table":"orders"}'
    """
    connection = connection_of(context)
    known = read_positions(connection, name)
    chosen = [*known] if part is None else [parse_place(part)]
    _require_known(name, chosen, known)
    if not chosen:
        return say(f"{name} has no positions")
    if not yes:
        ask_first(
            f"read {len(chosen)} parts of {name} from the start again?", "nothing was changed"
        )
    set_positions(connection, name, dict.fromkeys(chosen))
    return say(f"{name}: {len(chosen)} parts are read from the start")


def _require_known(
    name: str, places: Iterable[str], known: Mapping[str, Position], hint: str = ""
) -> None:
    for place in places:
        if place not in known:
            shown = ", ".join([*known][:20]) or "none"
            raise ConfigError(f"{name!r} has no position for {place}; known: {shown}{hint}")


def _text(position: Position) -> str:
    return msgspec.json.encode(position).decode()
