"""`penstock groups`: list, describe with the lag of each partition, reset, delete."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.options import JsonOption, YesOption, connection_of
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.errors import ConfigError
from penstock.kafka import Admin, ResetPlan
from penstock.kafka.admin.groups import refuse_members
from penstock.kafka.admin.resets import ALLOWED

app = typer.Typer(no_args_is_help=True, help="List, describe, reset and delete consumer groups.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]


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
def describe_group(context: typer.Context, group: Name, as_json: JsonOption = False) -> None:
    """Show a group's members, and its committed offset, end and lag in each partition.

    For example: penstock groups describe billing
    """
    with Admin(connection_of(context)) as admin:
        detail = admin.describe_group(group)
    if as_json:
        positions = [asdict(position) | {"lag": position.lag} for position in detail.positions]
        return print_json({**asdict(detail), "positions": positions, "lag": detail.lag})
    clients = {member.id: f"{member.client_id}@{member.host}" for member in detail.members}
    rows = [
        (p.topic, p.partition, p.committed, p.end, p.lag, clients.get(p.member or ""))
        for p in detail.positions
    ]
    print_table(("topic", "partition", "committed", "end", "lag", "member"), rows)
    return say(f"{detail.name}: {detail.state}, {len(detail.members)} members, lag {detail.lag}")


@app.command("reset")
def reset_group(
    context: typer.Context,
    group: Name,
    *,
    to: Annotated[str, typer.Option(metavar="PLACE", help=f"The new position: {ALLOWED}.")],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:PARTITION]",
            help="Only this; may be repeated. Default: all partitions with a committed offset.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reset a group's offsets: show the plan, ask, and then commit the new offsets.

    For example: penstock groups reset billing --to earliest --dry-run

    penstock groups reset billing --to -100 --topic trades:0

    A position outside of a partition becomes its nearest end, and the plan says so. Refused while
    the group has active members: they would continue from their positions and overwrite the reset.
    """
    chosen = [_chosen(text) for text in topics] if topics else None
    with Admin(connection_of(context)) as admin:
        plan = admin.plan_reset(group, to, chosen)
        _show_plan(plan, as_json)
        if dry_run:
            return say("dry run: nothing was changed")
        refuse_members(f"resetting group {group!r}", plan.members)
        if not yes:
            ask_first(
                f"reset group {group} in {len(plan.moves)} partitions?", "nothing was changed"
            )
        admin.reset(plan)
    return say(f"group {group} reset in {len(plan.moves)} partitions")


@app.command("delete")
def delete_groups(
    context: typer.Context,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Their names.")],
    yes: YesOption = False,
) -> None:
    """Delete groups with the offsets they committed; refused while a group has members.

    For example: penstock groups delete billing billing-test --yes
    """
    with Admin(connection_of(context)) as admin:
        for group in groups:
            admin.describe_group(group)  # all of them must exist before the first one is deleted
        if not yes:
            ask_first(
                f"delete {', '.join(groups)} with all committed offsets?", "nothing was deleted"
            )
        for group in groups:
            admin.delete_group(group)
            say(f"group {group} deleted")


def _show_plan(plan: ResetPlan, as_json: bool) -> None:
    if as_json:
        return print_json(plan_document(plan))
    rows = [(m.topic, m.partition, m.current, m.new, _signed(m.change), m.note) for m in plan.moves]
    print_table(("topic", "partition", "current", "new", "change", "note"), rows)
    if plan.state is None:
        say(f"group {plan.group} does not exist yet: this creates it")
    return None


def plan_document(plan: ResetPlan) -> dict[str, Any]:
    """Return the plan as JSON, with the computed change and note next to the offsets."""
    moves = [{**asdict(move), "change": move.change, "note": move.note} for move in plan.moves]
    return {**asdict(plan), "moves": moves}


def _signed(change: int | None) -> str | None:
    return None if change is None else f"{change:+d}"


def _chosen(text: str) -> str | tuple[str, int]:
    topic, colon, partition = text.partition(":")
    if not colon:
        return topic
    if not topic or not partition.isdecimal():
        raise ConfigError(f"--topic {text!r}: write TOPIC or TOPIC:PARTITION, for example trades:0")
    return topic, int(partition)
