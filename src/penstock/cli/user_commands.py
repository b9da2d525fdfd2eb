"""`penstock users`: the users of a server, in its store. The first one is added before it starts."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

import typer

from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.cli.worker_commands import KeysOption, StoreOption, actor
from penstock.config.printable import printable
from penstock.config.secrets import remember_secret
from penstock.control.places import open_store
from penstock.errors import ConfigError, NotFoundError, nearest

app = typer.Typer(no_args_is_help=True, help="Users of a server, in its store.")
User = Annotated[str, typer.Argument(metavar="NAME")]


@app.command()
def add(
    name: User,
    *,
    role: Annotated[
        list[str],
        typer.Option(
            "--role", metavar="ROLE[:KEY=VALUE]", help="viewer, operator, admin; for a label."
        ),
    ],
    store: StoreOption = None,
    keys: KeysOption = None,
) -> None:
    """Add a user; the password is asked for, or read from stdin.

    For example: penstock users add ann --role admin

    penstock users add bob --role viewer --role operator:team=payments
    """
    with open_store(store, keys) as opened:
        given = _new_password(name)
        with opened.change():
            opened.users.add(name, given, role)
            opened.audit.add(actor(), "user.add", name, grants=role)
    say(f"{name} is added: {', '.join(role)}")


@app.command("list")
def list_users(
    *, as_json: JsonOption = False, store: StoreOption = None, keys: KeysOption = None
) -> None:
    """List the users with their roles."""
    with open_store(store, keys) as opened:
        rows = opened.users.all()
    roles = {row.name: [grant.text for grant in row.grants] for row in rows}
    if as_json:
        return print_json(
            [{"name": row.name, "roles": roles[row.name], "disabled": row.disabled} for row in rows]
        )
    states = ("active", "disabled")
    return print_table(
        ["name", "roles", "state"],
        [[row.name, ", ".join(roles[row.name]), states[row.disabled]] for row in rows],
    )


@app.command()
def password(name: User, *, store: StoreOption = None, keys: KeysOption = None) -> None:
    """Replace the password of a user; all tokens of the user end."""
    with open_store(store, keys) as opened:
        _require(name, [row.name for row in opened.users.all()])
        given = _new_password(name)
        with opened.change():
            opened.users.set_password(name, given)
            opened.audit.add(actor(), "user.password", name)
    say(f"{name} has a new password, and must log in again")


@app.command()
def remove(
    name: User, *, yes: YesOption = False, store: StoreOption = None, keys: KeysOption = None
) -> None:
    """Remove a user with all tokens, after a confirmation."""
    with open_store(store, keys) as opened:
        _require(name, [row.name for row in opened.users.all()])
        if not yes:
            ask_first(f"Remove the user {name} and all tokens of the user?", "nothing was removed")
        with opened.change():
            opened.users.remove(name)
            opened.audit.add(actor(), "user.remove", name)
    say(f"{name} is removed")


def _require(name: str, names: list[str]) -> None:
    if name not in names:
        hint = nearest(name, names) if names else "there are none"
        raise NotFoundError(f"there is no user {name!r}; {hint}")


def _new_password(name: str) -> str:
    if not sys.stdin.isatty():
        given = sys.stdin.readline(10_000).rstrip("\r\n")
    else:
        given = getpass(f"new password of {printable(name)}: ", sys.stderr)
        if getpass("the same again: ", sys.stderr) != given:
            raise ConfigError("the two passwords are not the same; nothing was changed")
    remember_secret(given)
    return given
