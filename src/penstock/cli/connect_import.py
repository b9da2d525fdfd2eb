"""`penstock connect import`: the connectors of a running Kafka Connect cluster, with their offsets."""

from __future__ import annotations

import os
from base64 import b64encode
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from penstock.api_client.server_address import Credentials, find_server
from penstock.api_client.server_client import ServerClient
from penstock.cli.options import JsonOption
from penstock.cli.output import print_json, print_table, say, say_error
from penstock.cli.server_options import CaOption, client_of
from penstock.config.secrets import remember_secret
from penstock.connect.takeover.assessment import Assessment, assess
from penstock.connect.takeover.connect_cluster import ConnectCluster
from penstock.connect.takeover.taking_over import Outcome, TakeOver
from penstock.connect.worker_settings import read_worker
from penstock.errors import ConfigError, PenstockError

USER, PASSWORD = "PENSTOCK_CONNECT_USER", "PENSTOCK_CONNECT_PASSWORD"
_HEAD = ("name", "type", "class", "state there", "can run here", "remarks")


def import_cluster(
    url: Annotated[str, typer.Argument(metavar="URL", help="The REST API of the Connect cluster.")],
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SERVER",
            envvar="PENSTOCK_SERVER",
            help="The server that takes them over; default: that of penstock.yaml, or of this machine.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Names to take, as in 'orders-*'; may be repeated."),
    ] = None,
    worker: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The property file of the workers there: connectors get its converters.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report; nothing is changed, here or there.")
    ] = False,
    stop_there: Annotated[
        bool, typer.Option("--stop-there", help="Stop connectors there, and start them here.")
    ] = False,
    as_json: JsonOption = False,
    ca: CaOption = None,
) -> None:
    """Report which connectors of a Connect cluster can run here, and take them over with their offsets.

    For example: penstock connect import http://connect:8083 --dry-run, then with --stop-there

    Without --stop-there, connectors that run there are created here as STOPPED. A login of the cluster is
    in PENSTOCK_CONNECT_USER and PENSTOCK_CONNECT_PASSWORD.
    """
    defaults = read_worker(worker).defaults if worker else None
    with _client_there(url, ca) as source, client_of(to, ca) as target:
        there, here = ConnectCluster(source), ConnectCluster(target)
        _require_two(there, here)
        known = here.connectors()
        listed = sorted(there.connectors().items())
        chosen = [each for name, each in listed if _is_chosen(name, only or [])]
        found = [assess(each, here, known, defaults) for each in chosen]
        _print(found, as_json=as_json)
        if dry_run:
            return
        failed = _take_all(TakeOver(there, here, stop_there, say), found)
    if failed or not all(each.can_run for each in found):
        raise typer.Exit(1)


def _client_there(url: str, ca: str | None) -> ServerClient:
    address = find_server(url, ca)
    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    if not user or password is None:
        return ServerClient(address)
    remember_secret(password)
    address.require_private()
    token = b64encode(f"{user}:{password}".encode()).decode()
    remember_secret(token)
    return ServerClient(address, Credentials(token, scheme="Basic"))


def _require_two(there: ConnectCluster, here: ConnectCluster) -> None:
    if there.url == here.url:
        raise ConfigError(
            f"{there.url} is the server that would take connectors over; give another with --to"
        )
    ids = there.cluster_id(), here.cluster_id()
    if all(ids) and ids[0] != ids[1]:
        raise ConfigError(
            f"{there.url} works with the Kafka cluster {ids[0]}, and {here.url} with {ids[1]}: offsets "
            "are those of one cluster; start the server with the connection of the workers there"
        )


def _is_chosen(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _print(found: list[Assessment], *, as_json: bool) -> None:
    if as_json:
        print_json([_described(each) for each in found])
    elif found:
        print_table(_HEAD, [_row(each) for each in found])
    else:
        say("there are no connectors to take over")


def _described(each: Assessment) -> dict[str, object]:
    there = each.there
    return {
        "name": there.name,
        "type": there.kind,
        "class": there.class_name,
        "state": there.state,
        "can_run": each.can_run,
        "problems": [*each.problems],
        "remarks": [*each.remarks],
    }


def _row(each: Assessment) -> list[str]:
    there = each.there
    remarks = "; ".join((*each.problems, *each.remarks))
    last = there.class_name.rpartition(".")[2]
    return [there.name, there.kind, last, there.state, "yes" if each.can_run else "no", remarks]


def _take_all(takeover: TakeOver, found: list[Assessment]) -> int:
    """Take over what can run here; return how many failed."""
    failed = 0
    for each in found:
        if not each.can_run:
            continue
        try:
            _say_outcome(each.there.name, takeover.take(each), takeover)
        except PenstockError as error:
            failed += 1
            say_error(f"{each.there.name} was not taken over: {error}")
    return failed


def _say_outcome(name: str, outcome: Outcome, takeover: TakeOver) -> None:
    match outcome:
        case Outcome.TAKEN:
            say(f"{name}: it runs here; there it is STOPPED")
        case Outcome.STOPPED:
            say(
                f"{name}: it was STOPPED there, and is here; to start it: "
                f"penstock connectors resume '{name}'"
            )
        case Outcome.CREATED:
            say(
                f"{name}: it is created here as STOPPED, and goes on there; to take it over with its "
                f"offsets: penstock connect import {takeover.there.url} --only '{name}' --stop-there"
            )
