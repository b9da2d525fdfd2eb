"""`penstock get`, `describe` and `history`: what a server runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli.deployment_table import generation_of, moment, row_of, state_of
from penstock.cli.event_commands import event_line, newest_events
from penstock.cli.options import JsonOption
from penstock.cli.output import print_json, print_table, say, write
from penstock.cli.server_options import CaOption, Name, ServerOption, client_of
from penstock.config.printable import printable, printable_lines

LabelFilter = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="KEY[=VALUE]", help="With this label; may be repeated."),
]


def get(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: all.")] = None,
    *,
    label: LabelFilter = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="In this state, as in running or failed.")
    ] = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """List the deployments of a server.

    For example: penstock get --state failed

    penstock get -l team=payments --json
    """
    with client_of(server, ca) as client:
        if name is not None:
            found = [client.get(f"/deployments/{in_path(name)}")]
        else:
            found = list(client.items("/deployments", label=label, state=state))
    if as_json:
        print_json(found[0] if name is not None else found)
        return
    rows = [row_of(each) for each in found]
    if not rows:
        say("there are no deployments" + (" like this" if label or state else ""))
        return
    print_table(list(rows[0]), [list(row.values()) for row in rows])


def describe(
    name: Name, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Show a deployment: its run, counters and lag, its last events, its definition.

    For example: penstock describe orders
    """
    with client_of(server, ca) as client:
        found = client.get(f"/deployments/{in_path(name)}")
        found["lag"] = _lag(client, name)
        found["events"] = newest_events(client, name, 10)
    if as_json:
        print_json(found)
        return
    lines = [f"{key + ':':<14}{printable(str(value))}" for key, value in _facts(found).items()]
    lines += ["", "events:", *(f"  {event_line(each)}" for each in found["events"])]
    lines += ["", "definition:", *(f"  {line}" for line in found["definition"].splitlines())]
    write((printable_lines("\n".join(lines)) + "\n").encode())


def _lag(client: ServerClient, name: str) -> int | None:
    points = client.get(f"/deployments/{in_path(name)}/samples", resolution=10)["points"]
    return points[-1]["lag"] if points else None


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    run, counters = found["run"], found["counters"]
    facts = {
        "name": found["name"],
        "kind": found["kind"],
        "labels": ", ".join(f"{key}={value}" for key, value in found["labels"].items()),
        "state": state_of(found),
        "generation": generation_of(found),
        "changed": f"{moment(found['changed'])} by {found['changed_by']}",
        "worker": run["worker"] if run["held"] else "",
        "error": run["error"] or "",
        "restarts": run["restarts"],
        "records": counters["records"],
        "rows": counters["rows"],
        "failed": counters["failed"],
        "lost": counters["lost"],
        "lag": found["lag"],
        "last batch": moment(counters["last_batch"]),
    }
    return {key: value for key, value in facts.items() if value not in ("", None)}


def history(
    name: Name,
    *,
    generation: Annotated[
        int | None, typer.Option(min=1, help="Print the definition of this generation.")
    ] = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """List the generations of a deployment, or print the definition of one.

    For example: penstock history orders --generation 2
    """
    path = f"/deployments/{in_path(name)}/history"
    with client_of(server, ca) as client:
        if generation is not None:
            one = client.get(f"{path}/{generation}")
            if as_json:
                return print_json(one)
            return write(printable_lines(one["definition"]).encode())
        rows = list(client.items(path))
    if as_json:
        return print_json(rows)
    return print_table(
        ["generation", "at", "by", "labels"],
        [
            [
                row["generation"],
                moment(row["at"]),
                row["by"],
                ",".join(f"{key}={value}" for key, value in row["labels"].items()),
            ]
            for row in rows
        ],
    )
