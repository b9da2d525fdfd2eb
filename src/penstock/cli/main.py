"""The entry point of the command line: global options, the table of commands, and exit codes.

Only what `--help` needs is imported here; each command's module is loaded when it is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from typer.main import get_command

from penstock.cli.lazy import Entry, group_of, load
from penstock.errors import PenstockError, missing_extra

COMMANDS = {
    "demo": Entry("penstock.cli.demo:demo", "Stream generated trades into a table."),
    "run": Entry("penstock.cli.pipelines:run", "Run a pipeline.", True),
    "check": Entry("penstock.cli.pipelines:check", "Check a pipeline definition."),
    "schema": Entry("penstock.cli.pipelines:schema", "JSON schema of definitions, for editors."),
    "setup": Entry("penstock.cli.pipelines:setup", "Download the jars of pipelines and broker."),
    "jobs": Entry(
        "penstock.cli.job_commands:app", "Stored jobs: topics into tables in the background.", True
    ),
    "serve": Entry("penstock.cli.serve:serve", "Serve the API, and run deployments in workers."),
    "worker": Entry(
        "penstock.cli.worker_commands:app", "Run deployments of a server; list and drain workers."
    ),
    "users": Entry("penstock.cli.user_commands:app", "Users of a server: add, list, remove."),
    "login": Entry("penstock.cli.login_commands:login", "Log in to a server."),
    "logout": Entry("penstock.cli.login_commands:logout", "Log out of a server."),
    "apply": Entry("penstock.cli.apply:apply", "Deploy definitions on a server."),
    "get": Entry("penstock.cli.deployment_commands:get", "List the deployments of a server."),
    "describe": Entry(
        "penstock.cli.deployment_commands:describe", "Show a deployment: definition, run, events."
    ),
    "pause": Entry("penstock.cli.deployment_actions:pause", "Pause deployments."),
    "resume": Entry("penstock.cli.deployment_actions:resume", "Run paused or stopped deployments."),
    "stop": Entry("penstock.cli.deployment_actions:stop", "Stop deployments."),
    "restart": Entry("penstock.cli.deployment_actions:restart", "Restart deployments."),
    "delete": Entry("penstock.cli.deployment_actions:delete", "Delete deployments."),
    "history": Entry(
        "penstock.cli.deployment_commands:history", "List the generations of a deployment."
    ),
    "rollback": Entry(
        "penstock.cli.deployment_actions:rollback", "Deploy an earlier generation again."
    ),
    "events": Entry("penstock.cli.event_commands:events", "Show events of deployments."),
    "logs": Entry("penstock.cli.log_commands:logs", "Show the logs of a deployment or a worker."),
    "top": Entry("penstock.cli.top:top", "Show deployments and their throughput, live."),
    "deadletters": Entry(
        "penstock.cli.dead_letter_commands:app", "List, show, replay and drop dead letters.", True
    ),
    "broker": Entry("penstock.cli.broker_commands:app", "Start and stop a local Kafka broker."),
    "topics": Entry(
        "penstock.cli.topic_commands:app", "List, describe, create, alter topics.", True
    ),
    "groups": Entry(
        "penstock.cli.group_commands:app", "Consumer groups: lag, reset, delete.", True
    ),
    "offsets": Entry(
        "penstock.cli.offset_commands:app", "How far imports have read: list, set, reset.", True
    ),
    "connectors": Entry(
        "penstock.cli.connector_commands:app", "Connectors of Kafka Connect on a server."
    ),
    "connect": Entry(
        "penstock.cli.connect_commands:app",
        "Workers from Kafka Connect's property files; import of a Connect cluster.",
    ),
    "flows": Entry(
        "penstock.cli.flow_commands:app", "Flows: messages through steps to other systems.", True
    ),
    "mirror": Entry("penstock.cli.mirror_commands:app", "Copy topics from one cluster to another."),
    "acls": Entry("penstock.cli.acl_commands:app", "List, add and remove ACLs.", True),
    "cluster": Entry(
        "penstock.cli.cluster_commands:cluster", "Show the cluster and its brokers.", True
    ),
    "produce": Entry("penstock.cli.produce:produce", "Write lines from stdin to a topic.", True),
    "consume": Entry("penstock.cli.consume:consume", "Print the records of topics.", True),
    "infer": Entry(
        "penstock.cli.infer:infer", "Print a pipeline definition inferred from a topic.", True
    ),
    "doctor": Entry("penstock.cli.doctor:doctor", "Check this machine for problems.", True),
}

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed; 2 invalid input (option, file, topic); "
    "3 this machine lacks something; 4 a broker or another system is unavailable; 130 interrupted."
)

app = typer.Typer(
    name="penstock",
    cls=group_of(COMMANDS),
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {version('penstock')}")
        raise typer.Exit


@app.callback()
def penstock(
    context: typer.Context,
    connection: Annotated[
        str | None,
        typer.Option("--connection", "-c", metavar="NAME", help="A connection of penstock.yaml."),
    ] = None,
    brokers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Brokers, instead of a connection.")
    ] = None,
    log_format: Annotated[str, typer.Option(metavar="text|json", help="Log format.")] = "text",
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="More logs; twice: all.")
    ] = 0,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="The version.")
    ] = False,
) -> None:
    """Kafka for Python: produce, consume and administer; stream topics into tables on Spark.

    --connection and --brokers may also follow run, topics, groups, acls, cluster, produce, consume,
    infer and doctor.
    """
    if log_format not in ("text", "json"):
        raise typer.BadParameter(f"{log_format!r} is not a log format; allowed: text, json")
    load("penstock.cli.log_output:set_up")(log_format, verbose)
    context.obj = load("penstock.cli.options:Cluster")(connection, brokers)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with the code of the outcome."""
    try:
        _run(args)
    except SystemExit as end:
        raise SystemExit(_flushed(end.code)) from None
    except PenstockError as error:
        load("penstock.cli.output:say_error")(str(error))
        raise SystemExit(error.exit_code) from None
    except Exception as error:  # the last resort: nothing after it could report the error
        path = load("penstock.cli.log_output:write_crash")(error)
        load("penstock.cli.output:say_error")(
            f"unexpected {type(error).__name__}: the details are in {path}; "
            "this is a bug in Penstock, please report it with that file"
        )
        raise SystemExit(1) from None


def _run(args: Sequence[str] | None) -> None:
    try:
        get_command(app).main(args=args, prog_name="penstock")
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "this command") from missing


def _flushed(code: str | int | None) -> str | int | None:
    # `penstock consume ... | head` closes our stdout: that is a normal end, not an error.
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
