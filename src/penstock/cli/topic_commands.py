"""`penstock topics`: list, describe, create, alter, delete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.options import JsonOption, YesOption, connection_of
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.errors import ConfigError
from penstock.kafka import Admin

app = typer.Typer(no_args_is_help=True, help="List, describe, create, alter and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@app.command("list")
def list_topics(
    context: typer.Context,
    internal: Annotated[
        bool, typer.Option("--internal", help="Include Kafka's internal topics.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the topics of the cluster.

    For example: penstock topics list --json
    """
    with Admin(connection_of(context)) as admin:
        topics = admin.topics(internal=internal)
    if as_json:
        return print_json(topics)
    rows = [(t.name, t.partitions, t.replication) for t in topics]
    return print_table(("topic", "partitions", "replication"), rows)


@app.command("describe")
def describe_topic(
    context: typer.Context,
    topic: Name,
    everything: Annotated[
        bool, typer.Option("--all", help="Every setting, with its source.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a topic's partitions and its own settings.

    For example: penstock topics describe trades --all

    With --all every setting is shown with its source: topic (set for this topic), broker or cluster
    (changed while running), file (the broker's properties), default (Kafka's own).
    """
    with Admin(connection_of(context)) as admin:
        detail = admin.describe_topic(topic)
        settings = admin.topic_settings(topic) if everything else ()
    if as_json:
        return print_json({**asdict(detail), **({"settings": settings} if everything else {})})
    columns = ("partition", "leader", "replicas", "isr", "earliest", "latest")
    rows = [
        (p.partition, p.leader, _ids(p.replicas), _ids(p.isr), p.earliest, p.latest)
        for p in detail.partitions
    ]
    print_table(columns, rows)
    if everything:
        values = [(s.name, s.value, s.source) for s in settings]
        print_table(("setting", "value", "source"), values)
    elif detail.config:
        print_table(("setting", "value"), detail.config.items())
    return None


@app.command("create")
def create_topic(
    context: typer.Context,
    topic: Name,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Default: the broker's.")
    ] = None,
    replication: Annotated[
        int | None, typer.Option("--replication", "-r", min=1, help="Default: the broker's.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A setting; may be repeated."),
    ] = None,
) -> None:
    """Create a topic.

    For example: penstock topics create trades -p 6 --config retention.ms=60000
    """
    config = dict(_setting("--config", text) for text in settings or ())
    with Admin(connection_of(context)) as admin:
        admin.create_topic(topic, partitions, replication, config)
    say(f"topic {topic} created")


@app.command("alter")
def alter_topic(
    context: typer.Context,
    topic: Name,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a setting; may be repeated."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Restore the broker's setting; may be repeated."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="The new number of partitions.")
    ] = None,
) -> None:
    """Change settings of a topic, and add partitions; other settings are kept.

    For example: penstock topics alter trades --set retention.ms=60000 --unset cleanup.policy -p 12

    Adding partitions changes the partition of keys: order per key holds only for later records.
    """
    changes = _changes(settings or (), unset or ())
    if not changes and partitions is None:
        raise ConfigError("nothing to change: give --set KEY=VALUE, --unset KEY or --partitions N")
    with Admin(connection_of(context)) as admin:
        if changes:
            admin.alter_topic(topic, changes)
        if partitions is not None:
            admin.add_partitions(topic, partitions)
    say(f"topic {topic} altered")


@app.command("delete")
def delete_topics(
    context: typer.Context,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Their names.")],
    yes: YesOption = False,
) -> None:
    """Delete topics with every record in them.

    For example: penstock topics delete trades trades-copy --yes
    """
    with Admin(connection_of(context)) as admin:
        admin.partitions(topics)  # all of them must exist before the first one is deleted
        if not yes:
            ask_first(f"delete {', '.join(topics)} with all records?", "nothing was deleted")
        for topic in topics:
            admin.delete_topic(topic)
            say(f"topic {topic} deleted")


def _setting(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ConfigError(f"{option} {text!r}: write KEY=VALUE, for example retention.ms=60000")
    return key, value


def _changes(settings: Iterable[str], unset: Iterable[str]) -> dict[str, str | None]:
    wanted = dict(_setting("--set", text) for text in settings)
    for key in unset:
        if key in wanted:
            raise ConfigError(
                f"--set {key}=... and --unset {key} were both given; give one of them"
            )
    return {**wanted, **dict.fromkeys(unset)}


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
