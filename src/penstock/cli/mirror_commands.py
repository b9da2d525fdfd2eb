"""`penstock mirror`: topics of one cluster into another, and how far they are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.options import JsonOption
from penstock.cli.output import print_json, print_table, say
from penstock.cli.pipelines import run_pipelines, with_spark
from penstock.config import Connection, find_connection
from penstock.pipeline import Pipeline

app = typer.Typer(
    no_args_is_help=True, help="Copy topics from one cluster to another: run, status."
)

From = Annotated[
    str,
    typer.Option(
        "--from", metavar="CLUSTER", help="The source: a connection of penstock.yaml, or HOST:PORT."
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to", metavar="CLUSTER", help="The target: a connection of penstock.yaml, or HOST:PORT."
    ),
]


@app.command("run")
def run_mirror(
    *,
    source: From,
    target: To,
    topics: Annotated[
        str | None, typer.Option(metavar="TOPIC,...", help="The topics to copy.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Instead: a pattern for their names.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Which of them to leave out; may be repeated."),
    ] = None,
    rename: Annotated[
        str, typer.Option(metavar="NAME", help="The names of the copies, as {cluster}.{topic}.")
    ] = "{topic}",
    groups: Annotated[
        str | None, typer.Option(metavar="GROUP,...", help="Groups whose offsets are translated.")
    ] = None,
    group_pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Instead: a pattern for their names.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The mirror's name; default: mirror-FROM.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Copy the current records, then exit.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(metavar="MASTER", envvar="PENSTOCK_SPARK_MASTER", help="Where Spark runs."),
    ] = None,
) -> None:
    """Copy topics with partitions, keys, headers, times and settings, until Ctrl-C or, with --once, now.

    For example: penstock mirror run --from east --to west --pattern 'shop[.].*' --groups billing

    Each record is copied exactly once, however often the mirror is stopped and started.
    """
    options = {
        "cluster": _cluster(source),
        "alias": "" if ":" in source else source,
        "topics": topics,
        "pattern": pattern,
        "exclude": exclude,
        "groups": groups,
        "group_pattern": group_pattern,
    }
    definition = Pipeline(
        name=name or _default_name(source),
        connection=_cluster(target),
        source={"mirror": _given(options)},
        sink={"kafka": rename},
        delivery="exactly-once",
    )
    run_pipelines([with_spark(definition, master, [])], once=once)


@app.command("status")
def status(
    source: From,
    target: To,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The mirror; default: mirror-FROM.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the lag of each partition, and the offsets of groups in both clusters.

    For example: penstock mirror status --from east --to west
    """
    from penstock.imports.mirror.mirror_status import mirror_status  # noqa: PLC0415 - takes a while

    found = mirror_status(name or _default_name(source), _cluster(source), _cluster(target))
    if as_json:
        partitions = [{**asdict(each), "lag": each.lag} for each in found.partitions]
        groups = [*map(asdict, found.groups)]
        return print_json({"name": found.name, "partitions": partitions, "groups": groups})
    print_table(
        ("topic", "partition", "into", "copied up to", "end", "lag"),
        [
            (
                each.topic,
                each.partition,
                each.into,
                each.offset,
                _or_gone(each.end),
                _or_gone(each.lag),
            )
            for each in found.partitions
        ],
    )
    if found.groups:
        print_table(
            ("group", "topic", "partition", "source offset", "target offset", "lag in target"),
            [
                (each.group, each.topic, each.partition, each.source, each.target, each.lag)
                for each in found.groups
            ],
        )
    lag = sum(each.lag or 0 for each in found.partitions)
    return say(f"{found.name}: {len(found.partitions)} partitions, {lag} offsets to copy")


def _cluster(given: str) -> Connection:
    return find_connection({"bootstrap.servers": given} if ":" in given else given)


def _default_name(source: str) -> str:
    """Return the name of a mirror that was not given one.

    >>> _default_name("east"), _default_name("localhost:9092")
    ('mirror-east', 'mirror-localhost-9092')
    """
    letters = [letter if letter.isalnum() or letter in "._-" else "-" for letter in source]
    return f"mirror-{''.join(letters)}"[:100]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _or_gone(number: int | None) -> object:
    return "gone" if number is None else number
