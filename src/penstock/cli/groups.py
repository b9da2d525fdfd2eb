"""`penstock groups`: list, and describe with the lag of each partition."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.options import JsonOption, connection_of
from penstock.cli.output import print_json, print_table, say
from penstock.kafka import Admin
from penstock.kafka.model import GroupDetail

app = typer.Typer(no_args_is_help=True, help="List and describe consumer groups.")


@app.command("list")
def list_groups(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the consumer groups of the cluster."""
    with Admin(connection_of(context)) as admin:
        groups = admin.groups()
    if as_json:
        return print_json(groups)
    return print_table(
        ("group", "state", "protocol"), [(g.name, g.state, g.protocol) for g in groups]
    )


@app.command("describe")
def describe_group(
    context: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")],
    as_json: JsonOption = False,
) -> None:
    """Show a group's members, and its committed offset, end and lag in each partition."""
    with Admin(connection_of(context)) as admin:
        detail = admin.describe_group(group)
    if as_json:
        return print_json(as_document(detail))
    return _print_detail(detail)


def as_document(detail: GroupDetail) -> dict[str, Any]:
    """The group as JSON, with what is worked out (the lag) beside what was told."""
    document = asdict(detail)
    for line, position in zip(document["positions"], detail.positions, strict=True):
        line["lag"] = position.lag
    return {**document, "lag": detail.lag}


def _print_detail(detail: GroupDetail) -> None:
    clients = {member.id: f"{member.client_id}@{member.host}" for member in detail.members}
    rows = [
        (p.topic, p.partition, p.committed, p.end, p.lag, clients.get(p.member or ""))
        for p in detail.positions
    ]
    print_table(("topic", "partition", "committed", "end", "lag", "member"), rows)
    say(f"{detail.name}: {detail.state}, {len(detail.members)} members, lag {detail.lag}")
