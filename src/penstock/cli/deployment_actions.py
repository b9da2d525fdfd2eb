"""`penstock pause`, `resume`, `stop`, `restart`, `delete` and `rollback`: change what a server runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli.deployment_table import state_of
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, counted, print_json, say, say_error
from penstock.cli.server_options import CaOption, Name, Names, ServerOption, client_of
from penstock.errors import PenstockError


def pause(
    names: Names, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Stop deployments after their running batch, and remember that they are to go on.

    For example: penstock pause orders payments
    """
    with client_of(server, ca) as client:
        _change(client, names, _action("pause"), "is to be paused", as_json=as_json)


def resume(
    names: Names, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Run deployments that are paused or stopped.

    For example: penstock resume orders
    """
    with client_of(server, ca) as client:
        _change(client, names, _action("resume"), "is to run", as_json=as_json)


def stop(
    names: Names, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Stop deployments after their running batch; 'penstock resume' starts them again.

    For example: penstock stop orders
    """
    with client_of(server, ca) as client:
        _change(client, names, _action("stop"), "is to be stopped", as_json=as_json)


def restart(
    names: Names, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Start deployments again, also those that have failed.

    For example: penstock restart orders
    """
    with client_of(server, ca) as client:
        _change(client, names, _action("restart"), "is to be restarted", as_json=as_json)


def delete(
    names: Names,
    *,
    yes: YesOption = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Stop deployments and remove them with their state, after a confirmation.

    For example: penstock delete orders

    Tables and topics that they wrote are kept. The same name deployed again starts over.
    """
    with client_of(server, ca) as client:
        if not yes:
            what = ", ".join(names) if len(names) <= 10 else counted(len(names), "deployment")
            ask_first(f"Delete {what} on {client.address.url}?", "nothing was deleted")
        _change(client, names, delete_one, "is to be deleted", as_json=as_json)


def rollback(
    name: Name,
    generation: Annotated[
        int, typer.Argument(metavar="GENERATION", min=1, help="See 'penstock history NAME'.")
    ],
    *,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Deploy an earlier generation again, as a new one.

    For example: penstock rollback orders 2
    """
    with client_of(server, ca) as client:
        path = f"/deployments/{in_path(name)}/rollback"
        found = client.send("POST", path, {"generation": generation}).data
    if as_json:
        return print_json(found)
    return say(f"{name} is as in generation {generation} again: generation {found['generation']}")


Change = Callable[[ServerClient, str], Any]


def delete_one(client: ServerClient, name: str) -> Any:
    """Delete a deployment; return its last representation."""
    return client.send("DELETE", f"/deployments/{in_path(name)}").data


def _action(verb: str) -> Change:
    return lambda client, name: client.send("POST", f"/deployments/{in_path(name)}/{verb}").data


def _change(
    client: ServerClient, names: list[str], change: Change, text: str, *, as_json: bool
) -> None:
    """Change each deployment, report each outcome, and exit with the code of the last error."""
    wanted = list(dict.fromkeys(names))
    outcomes = client.each(lambda name: change(client, name), wanted)
    if as_json:
        print_json([each for each in outcomes if not isinstance(each, PenstockError)])
    code = 0
    for name, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, PenstockError):
            say_error(str(outcome))
            code = outcome.exit_code
        elif not as_json:
            say(f"{name} {text}; now: {state_of(outcome)}")
    if code:
        raise typer.Exit(code)
