"""`penstock cluster`: which cluster this is, and who its brokers are."""

from __future__ import annotations

from dataclasses import asdict

import typer

from penstock.cli.options import JsonOption, connection_of
from penstock.cli.output import counted, print_json, print_table, say
from penstock.kafka import Admin
from penstock.kafka.admin.model import BrokerInfo, ClusterInfo


def cluster(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the cluster's id, its controller and its brokers.

    For example: penstock cluster --json --brokers localhost:9092

    With --json also all consumer groups with their members, and all topics with their partitions.
    """
    with Admin(connection_of(context)) as admin:
        found = admin.cluster()
        everything = admin.metadata() if as_json else {}
    if as_json:
        return print_json({**asdict(found), **everything})
    return _show(found)


def _show(found: ClusterInfo) -> None:
    rows = [(b.id, b.host, b.port, b.rack, _role(found, b)) for b in found.brokers]
    print_table(("id", "host", "port", "rack", "role"), rows)
    say(
        f"cluster {found.id}, {counted(len(found.brokers), 'broker')}, controller {found.controller}"
    )


def _role(found: ClusterInfo, broker: BrokerInfo) -> str:
    return "controller" if broker.id == found.controller else ""
