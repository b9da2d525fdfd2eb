"""`penstock login` and `logout`: a token of a server, stored for this user."""

from __future__ import annotations

import socket
import sys
from getpass import getpass
from typing import Annotated

import typer

from penstock.api_client.server_address import (
    Credentials,
    ServerAddress,
    find_credentials,
    find_server,
    remove_credentials,
    store_credentials,
)
from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli.output import messages, say
from penstock.cli.server_options import CaOption, ServerOption
from penstock.config.printable import printable
from penstock.config.secrets import remember_secret
from penstock.errors import ConfigError, NotFoundError, PenstockError

_LONGEST = 10_000


def login(
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="Default: it is asked for.")
    ] = None,
    *,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Read a token from stdin, instead of a password.")
    ] = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Log in to a server: a token is stored, which later commands use.

    For example: penstock login --server https://penstock.example:8083 --user ann

    In scripts: penstock login --with-token < token.txt, or set PENSTOCK_TOKEN.
    """
    address = find_server(server, ca)
    address.require_private()
    credentials = _with_token(address) if with_token else _with_password(address, user)
    file = store_credentials(address.url, credentials)
    say(f"logged in to {address.url} as {credentials.user}; the token is in {file}")


def logout(*, server: ServerOption = None, ca: CaOption = None) -> None:
    """Revoke the token of a server, and remove it from this machine.

    For example: penstock logout
    """
    address = find_server(server, ca)
    # Only the stored token ends: that of the environment was created elsewhere.
    stored = find_credentials(ServerAddress(address.url, address.ca, trusted=False))
    if stored is None:
        raise NotFoundError(f"there is no stored token for {address.url}")
    if stored.id:
        try:
            with ServerClient(address, stored) as client:
                client.send("DELETE", f"/tokens/{in_path(stored.id)}")
        except PenstockError as error:
            say(f"the token could not be revoked, and ends when it expires: {error}")
    remove_credentials(address.url)
    say(f"logged out of {address.url}")


def _with_password(address: ServerAddress, user: str | None) -> Credentials:
    name = user or _asked("user: ")
    password = _password(name, address)
    remember_secret(password)
    body = {"user": name, "password": password, "name": f"command line, {socket.gethostname()}"}
    with ServerClient(address) as client:
        reply = client.send("POST", "/login", body).data
    return Credentials(reply["token"], reply["user"], reply["id"])


def _with_token(address: ServerAddress) -> Credentials:
    token = sys.stdin.readline(_LONGEST).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("stdin has no token; give one line with the text of the token")
    remember_secret(token)
    with ServerClient(address, Credentials(token)) as client:
        return Credentials(token, client.get("/me")["user"])


def _asked(question: str) -> str:
    messages().print(question, end="", markup=False)
    answer = sys.stdin.readline(_LONGEST).strip()
    if not answer:
        raise ConfigError("no user was given; give --user NAME")
    return answer


def _password(user: str, address: ServerAddress) -> str:
    """Return a password that is typed without being shown, or the next line of a pipe."""
    if sys.stdin.isatty():
        return getpass(f"password of {printable(user)} at {address.url}: ", sys.stderr)
    return sys.stdin.readline(_LONGEST).rstrip("\r\n")
