"""`penstock apply`: bring a server's deployments to what files define."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.api_client.server_address import ServerAddress
from penstock.cli.apply_plan import Planned, carry_out, plan
from penstock.cli.definition_files import DefinitionFile, read_definitions
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, counted, print_json, say, say_error, write
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.config.printable import printable, printable_lines
from penstock.errors import ConfigError


def apply(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE|DIR...", help="Definitions, and folders of definitions."),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the differences; change nothing.")
    ] = False,
    yes: YesOption = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Delete deployments (with --label: those) that are not given."
        ),
    ] = False,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="KEY=VALUE", help="A label of all; repeatable."),
    ] = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Deploy definitions: show what changes, ask, and change it.

    For example: penstock apply orders.yaml

    A whole folder, without questions: penstock apply pipelines/ --yes --prune --label team=payments

    If one definition is not valid, nothing is changed. A deployment that someone else changes
    in the meantime is not overwritten.
    """
    labels = _labels(label or [])
    if prune and not labels and not any(path.is_dir() for path in paths):
        raise ConfigError(
            "--prune without --label deletes every deployment that is not given, and only files are "
            "given; give a folder, or limit it with --label KEY=VALUE"
        )
    definitions = read_definitions(paths)
    with client_of(server, ca) as client:
        _require_own(client.address, definitions)
        planned = plan(client, definitions, labels, prune=prune)
        changes = [each for each in planned if each.action != "unchanged"]
        if not as_json:
            _show(planned)
        if changes and not dry_run:
            if not yes:
                question = f"Apply {counted(len(changes), 'change')} to {client.address.url}?"
                ask_first(question, "nothing was applied")
            failed = carry_out(client, changes, labels)
        else:
            failed = []
    if as_json:
        print_json([each.shown(is_applied=not dry_run) for each in planned])
    elif not dry_run and len(failed) < len(changes):
        say(f"{counted(len(changes) - len(failed), 'change')} applied")
    for error in failed:
        say_error(str(error))
    if failed:
        raise typer.Exit(max(error.exit_code for error in failed))


def _require_own(address: ServerAddress, definitions: list[DefinitionFile]) -> None:
    """Refuse to send files from elsewhere to a server that the working folder names."""
    if address.trusted or address.is_loopback:
        return
    for each in definitions:
        if not each.file.resolve().is_relative_to(Path.cwd().resolve()):
            raise ConfigError(
                f"{each.file} is outside of this folder, and the server {address.url} is named by the "
                f"penstock.yaml of this folder; to send it there: --server {address.url}"
            )


def _labels(given: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ConfigError(f"--label {text!r} is not a label; write it as in team=payments")
        if labels.setdefault(key, value) != value:
            raise ConfigError(f"--label {key} is given with two values; give one")
    return labels


def _show(planned: list[Planned]) -> None:
    """Print the differences as data, and a summary as a message."""
    for each in planned:
        if each.action == "unchanged":
            continue
        write(f"{each.action} {printable(each.name)}{_labels_text(each)}\n".encode())
        if each.action == "update" and each.diff:
            write(f"{printable_lines(each.diff)}\n".encode())
    actions = [each.action for each in planned]
    counts = ((actions.count(action), action) for action in dict.fromkeys(actions))
    say(", ".join(f"{number} {_OUTCOMES[action]}" for number, action in counts))


_OUTCOMES = {
    "create": "to create",
    "update": "to update",
    "delete": "to delete",
    "unchanged": "unchanged",
}


def _labels_text(planned: Planned) -> str:
    if planned.labels_before == planned.labels_after:
        return ""
    shown = ", ".join(f"{key}={value}" for key, value in planned.labels_after.items())
    return f" (labels: {printable(shown) or 'none'})"
