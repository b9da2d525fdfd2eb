"""`penstock topics`: list, describe, create, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import JsonOption, connection_of
from penstock.cli.output import confirmed, print_json, print_table, say
from penstock.errors import ConfigError
from penstock.kafka import Admin
from penstock.kafka.model import TopicDetail

app = typer.Typer(no_args_is_help=True, help="List, describe, create and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@app.command("list")
def list_topics(
    context: typer.Context,
    internal: Annotated[bool, typer.Option("--internal", help="Kafka's own topics too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the topics of the cluster."""
    with Admin(connection_of(context)) as admin:
        topics = admin.topics(internal=internal)
    if as_json:
        return print_json(topics)
    rows = [(t.name, t.partitions, t.replication) for t in topics]
    return print_table(("topic", "partitions", "replication"), rows)


@app.command("describe")
def describe_topic(context: typer.Context, topic: Name, as_json: JsonOption = False) -> None:
    """Show a topic's partitions, and its settings that are not the broker's."""
    with Admin(connection_of(context)) as admin:
        detail = admin.describe_topic(topic)
    if as_json:
        return print_json(detail)
    return _print_detail(detail)


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
    """Create a topic."""
    config = dict(_setting(text) for text in settings or ())
    with Admin(connection_of(context)) as admin:
        admin.create_topic(topic, partitions, replication, config)
    say(f"topic {topic} created")


@app.command("delete")
def delete_topics(
    context: typer.Context,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Their names.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete topics with every record in them."""
    with Admin(connection_of(context)) as admin:
        admin.partitions(topics)  # all of them must be there before the first one goes
        if not yes and not confirmed(f"delete {', '.join(topics)} with all records?"):
            say("nothing was deleted")
            raise typer.Exit(1)
        for topic in topics:
            admin.delete_topic(topic)
            say(f"topic {topic} deleted")


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ConfigError(f"--config {text!r}: write KEY=VALUE, for example retention.ms=60000")
    return key, value


def _print_detail(detail: TopicDetail) -> None:
    rows = [
        (p.partition, p.leader, _ids(p.replicas), _ids(p.isr), p.earliest, p.latest)
        for p in detail.partitions
    ]
    print_table(("partition", "leader", "replicas", "isr", "earliest", "latest"), rows)
    if detail.config:
        print_table(("setting", "value"), detail.config.items())


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
