"""`penstock cluster`: the cluster's id, controller and brokers."""

from __future__ import annotations

from dataclasses import asdict

import typer

from penstock.cli.options import JsonOption, connection_of
from penstock.cli.output import counted, print_json, print_table, say
from penstock.kafka import Admin


def cluster(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the cluster's id, its controller and its brokers.

    For example: penstock cluster --json --brokers localhost:9092

    With --json also all consumer groups with their members, and all topics with their partitions.
    """
    with Admin(connection_of(context)) as admin:
        info = admin.cluster()
        everything = admin.metadata() if as_json else {}
    if as_json:
        return print_json({**asdict(info), **everything})
    rows = [
        (b.id, b.host, b.port, b.rack, "controller" if b.id == info.controller else "")
        for b in info.brokers
    ]
    print_table(("id", "host", "port", "rack", "role"), rows)
    return say(
        f"cluster {info.id}, {counted(len(info.brokers), 'broker')}, controller {info.controller}"
    )
