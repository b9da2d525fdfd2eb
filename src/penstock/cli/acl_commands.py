"""`penstock acls`: list, add and remove ACLs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Annotated

import typer

from penstock.cli.options import JsonOption, YesOption, connection_of
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.errors import ConfigError
from penstock.kafka import Acl, AclFilter, Admin
from penstock.kafka.admin.acls import OPERATIONS, RESOURCES

app = typer.Typer(no_args_is_help=True, help="List, add and remove ACLs.")

_COLUMNS = tuple(field.name for field in fields(Acl))

PrincipalOption = Annotated[
    str | None, typer.Option(metavar="TYPE:NAME", help="Only ACLs of this principal.")
]
OperationOption = Annotated[
    str | None, typer.Option(metavar="WORD", help=f"Only this operation: {', '.join(OPERATIONS)}.")
]
ResourceOption = Annotated[
    str | None,
    typer.Option(metavar="WORD", help=f"Only this resource type: {', '.join(RESOURCES)}."),
]
NameOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only ACLs for this name.")]
PermissionOption = Annotated[
    str | None, typer.Option(metavar="allow|deny", help="Only ACLs that allow, or that deny.")
]
PatternOption = Annotated[
    str | None,
    typer.Option(
        metavar="literal|prefixed|match",
        help="match: all ACLs that apply to --name, also by a prefix or by '*'.",
    ),
]
HostOption = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Only for this host.")]


@app.command("list")
def list_acls(
    context: typer.Context,
    *,
    principal: PrincipalOption = None,
    operation: OperationOption = None,
    resource: ResourceOption = None,
    name: NameOption = None,
    permission: PermissionOption = None,
    pattern: PatternOption = None,
    host: HostOption = None,
    as_json: JsonOption = False,
) -> None:
    """List ACLs: all of them, or those that match every given option.

    For example, those of a topic: penstock acls list --resource topic --name trades --pattern match
    """
    wanted = AclFilter(principal, operation, resource, name, permission, pattern, host)
    with Admin(connection_of(context)) as admin:
        acls = admin.acls(wanted)
    return print_json(acls) if as_json else _print(acls)


@app.command("add")
def add_acls(
    context: typer.Context,
    principal: Annotated[
        str, typer.Argument(metavar="PRINCIPAL", help="User:alice; User:* is every user.")
    ],
    operations: Annotated[
        str, typer.Argument(metavar="OPERATION,...", help=f"Of {', '.join(OPERATIONS)}.")
    ],
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help=f"One of {', '.join(RESOURCES)}.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="'*' is every name; a cluster needs none.")
    ] = "",
    *,
    deny: Annotated[bool, typer.Option("--deny", help="Deny it; this overrides allow.")] = False,
    prefixed: Annotated[
        bool, typer.Option("--prefixed", help="Every name that starts with NAME.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Only from this address.")] = "*",
) -> None:
    """Add ACLs, one for each operation; they take effect after a moment.

    For example: penstock acls add User:alice read,describe topic trades

    penstock acls add User:billing read group billing- --prefixed
    """
    permission = "deny" if deny else "allow"
    pattern = "prefixed" if prefixed else "literal"
    rules = [
        Acl(principal, operation, resource, name, permission, pattern, host)
        for operation in operations.split(",")
    ]
    with Admin(connection_of(context)) as admin:
        admin.create_acls(rules)
    for rule in rules:
        say(f"added: {rule}")


@app.command("remove")
def remove_acls(
    context: typer.Context,
    *,
    principal: PrincipalOption = None,
    operation: OperationOption = None,
    resource: ResourceOption = None,
    name: NameOption = None,
    permission: PermissionOption = None,
    pattern: PatternOption = None,
    host: HostOption = None,
    yes: YesOption = False,
) -> None:
    """Remove the ACLs that match every given option: show them, ask, remove exactly these.

    For example: penstock acls remove --principal User:alice --resource topic --name trades
    """
    wanted = AclFilter(principal, operation, resource, name, permission, pattern, host)
    if wanted == AclFilter():
        raise ConfigError(
            "which ACLs? give at least one of --principal, --operation, --resource, --name, --pattern, "
            "--host; 'penstock acls list' with the same options shows which would be removed"
        )
    with Admin(connection_of(context)) as admin:
        acls = admin.acls(wanted)
        _print(acls)
        if acls and not yes:
            ask_first(f"remove these {len(acls)} ACLs?", "nothing was removed")
        say(f"{len(admin.delete_acls(acls))} ACLs removed")


def _print(rules: Sequence[Acl]) -> None:
    print_table(_COLUMNS, [astuple(rule) for rule in rules])
