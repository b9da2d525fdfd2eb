"""The options of commands that use a server, and the client that they make."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.api_client.server_address import find_credentials, find_server
from penstock.api_client.server_client import ServerClient

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="PENSTOCK_SERVER",
        help="The server, or the name of a context of penstock.yaml; default: that of penstock.yaml, "
        "or http://127.0.0.1:8083.",
    ),
]
CaOption = Annotated[
    str | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        envvar="PENSTOCK_SERVER_CA",
        help="Authorities that the server's certificate is checked with (PEM).",
    ),
]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of deployments.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a deployment.")]


def client_of(server: str | None, ca: str | None) -> ServerClient:
    """Return a client of the chosen server, with the token for it."""
    address = find_server(server, ca)
    return ServerClient(address, find_credentials(address))
