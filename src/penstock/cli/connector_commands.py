"""`penstock connectors`: connectors of a server, through the REST API of Kafka Connect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli import connector_offset_commands
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, print_json, print_table, say
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.connect.connector_files import read_connector_file
from penstock.errors import ConfigError

app = typer.Typer(
    no_args_is_help=True,
    help="Connectors of Kafka Connect on a server: list, create, status, pause, resume, stop, restart, "
    "delete, config, offsets, validate, plugins.",
)
app.add_typer(connector_offset_commands.app, name="offsets")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a connector.")]
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The configuration: JSON as for the REST API, or a property file."
    ),
]
_CLASS = "connector.class"


@app.command("list")
def list_connectors(
    *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """List the connectors with their states.

    For example: penstock connectors list
    """
    with client_of(server, ca) as client:
        found = client.connect("GET", "/connectors", expand=["info", "status"])
    if as_json:
        print_json(found)
        return
    if not found:
        say("there are no connectors")
        return
    head = ["name", "type", "class", "state", "tasks"]
    print_table(head, [_row(name, each) for name, each in sorted(found.items())])


def _row(name: str, found: dict[str, Any]) -> list[str]:
    status, config = found["status"], found["info"]["config"]
    states = [task["state"] for task in status["tasks"]]
    tasks = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return [name, status["type"], config[_CLASS], status["connector"]["state"], tasks]


@app.command()
def create(file: File, *, server: ServerOption = None, ca: CaOption = None) -> None:
    """Create a connector, or replace the configuration of one.

    For example: penstock connectors create orders.json
    """
    given = read_connector_file(file)
    name = given.name
    with client_of(server, ca) as client:
        before = name in client.connect("GET", "/connectors")
        if before:
            client.connect("PUT", f"{_path(name)}/config", given.config)
        else:
            state = {"initial_state": given.initial_state} if given.initial_state else {}
            body = {"name": name, "config": given.config, **state}
            client.connect("POST", "/connectors", body)
        found = validated(client, given.config)
    say(f"connector {name} {'has a new configuration' if before else 'is created'}")
    _say_warnings(found)


@app.command()
def status(
    name: Name, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Show the states of a connector and its tasks, with the error of those that failed.

    For example: penstock connectors status orders
    """
    with client_of(server, ca) as client:
        found = client.connect("GET", f"{_path(name)}/status")
    if as_json:
        print_json(found)
        return
    rows = [["connector", found["connector"]["state"], found["connector"]["worker_id"], ""]]
    rows += [
        [f"task {task['id']}", task["state"], task["worker_id"], task.get("trace", "")]
        for task in found["tasks"]
    ]
    print_table(["part", "state", "worker", "error"], rows)


@app.command()
def pause(name: Name, *, server: ServerOption = None, ca: CaOption = None) -> None:
    """Pause a connector after its running batch.

    For example: penstock connectors pause orders
    """
    _ask(server, ca, "PUT", f"{_path(name)}/pause", f"connector {name} is to be paused")


@app.command()
def resume(name: Name, *, server: ServerOption = None, ca: CaOption = None) -> None:
    """Let a connector go on that is paused or stopped.

    For example: penstock connectors resume orders
    """
    _ask(server, ca, "PUT", f"{_path(name)}/resume", f"connector {name} is to run")


@app.command()
def stop(name: Name, *, server: ServerOption = None, ca: CaOption = None) -> None:
    """Stop a connector: its offsets can be changed then.

    For example: penstock connectors stop orders
    """
    _ask(server, ca, "PUT", f"{_path(name)}/stop", f"connector {name} is to be stopped")


@app.command()
def restart(
    name: Name,
    *,
    only_failed: Annotated[bool, typer.Option(help="Only what has failed.")] = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Restart a connector and its tasks.

    For example: penstock connectors restart orders --only-failed
    """
    flags = {"includeTasks": "true", "onlyFailed": str(only_failed).lower()}
    path = f"{_path(name)}/restart"
    _ask(server, ca, "POST", path, f"connector {name} is to be restarted", **flags)


@app.command()
def delete(
    name: Name, *, yes: YesOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Remove a connector, after a confirmation; the positions of a source are kept.

    For example: penstock connectors delete orders
    """
    with client_of(server, ca) as client:
        if not yes:
            ask_first(
                f"Delete the connector {name} on {client.address.url}?", "nothing was deleted"
            )
        client.connect("DELETE", _path(name))
    say(f"connector {name} is deleted")


@app.command()
def validate(
    file: File, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Check a configuration without storing it; every error, and every key that has no effect.

    For example: penstock connectors validate orders.properties
    """
    config = read_connector_file(file).config
    with client_of(server, ca) as client:
        found = validated(client, config)
    if as_json:
        print_json(found)
        return
    _say_warnings(found)
    wrong = [
        [each["value"]["name"], error]
        for each in found["configs"]
        for error in each["value"]["errors"]
    ]
    if wrong:
        print_table(["key", "error"], wrong)
        raise ConfigError(f"{file} has {len(wrong)} errors")
    say(f"{file} is valid")


@app.command()
def config(
    name: Name, *, as_json: JsonOption = False, server: ServerOption = None, ca: CaOption = None
) -> None:
    """Show the configuration of a connector; secrets in it are masked.

    For example: penstock connectors config orders
    """
    with client_of(server, ca) as client:
        found = client.connect("GET", f"{_path(name)}/config")
    if as_json:
        print_json(found)
        return
    print_table(["key", "value"], sorted(found.items()))


def _say_warnings(found: dict[str, Any]) -> None:
    """Print the keys that have no effect; a Connect cluster does not name them."""
    for each in found.get("warnings", ()):
        say(f"warning: {each['text']}")


def validated(client: ServerClient, config: dict[str, str]) -> dict[str, Any]:
    """Return the check of a configuration."""
    path = f"/connector-plugins/{in_path(config[_CLASS])}/config/validate"
    found: dict[str, Any] = client.connect("PUT", path, config, warnings="true")
    return found


@app.command()
def plugins(
    plugin: Annotated[
        str | None,
        typer.Argument(metavar="[CLASS]", help="Instead of the list: the keys of this class."),
    ] = None,
    *,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """List the classes of connectors, or the keys of one class.

    For example: penstock connectors plugins FileStreamSource
    """
    path = "" if plugin is None else f"/{in_path(plugin)}/config"
    with client_of(server, ca) as client:
        found = client.connect("GET", f"/connector-plugins{path}")
    if as_json:
        print_json(found)
        return
    if plugin is not None:
        _print_keys(found)
        return
    rows = [[each["class"], each["type"], each["version"]] for each in found]
    print_table(["class", "type", "version"], rows)


def _print_keys(found: list[dict[str, Any]]) -> None:
    rows = [
        [
            each["name"],
            each["type"],
            "required" if each["required"] else each["default_value"],
            each["documentation"],
        ]
        for each in found
    ]
    print_table(["key", "type", "default", "meaning"], rows)


def _ask(
    server: str | None, ca: str | None, method: str, path: str, done: str, **query: str
) -> None:
    with client_of(server, ca) as client:
        client.connect(method, path, **query)
    say(done)


def _path(name: str) -> str:
    return f"/connectors/{in_path(name)}"
