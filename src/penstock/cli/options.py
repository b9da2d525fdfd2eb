"""The options that every command shares, above all the choice of the cluster."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Annotated

import typer

from penstock.config import Connection, find_connection
from penstock.errors import ConfigError

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_CLUSTER_OPTIONS = {"-c": "connection", "--connection": "connection", "--brokers": "brokers"}


@dataclass
class Cluster:
    """The cluster that the user chose: the name of a connection, or its brokers."""

    connection: str | None = None
    brokers: str | None = None

    def find(self) -> Connection:
        """Return the chosen connection: the named, the inline, or the default one."""
        if self.connection and self.brokers:
            raise ConfigError(
                f"--connection {self.connection} and --brokers {self.brokers} were both given; "
                "give one of them"
            )
        if self.brokers:
            return find_connection({"bootstrap.servers": self.brokers})
        return find_connection(self.connection)

    def take(self, args: list[str]) -> list[str]:
        """Remove the options that select the cluster from a command's arguments."""
        rest: list[str] = []
        waiting = iter(args)
        for arg in waiting:
            if arg == "--":
                return [*rest, arg, *waiting]
            name, equals, value = arg.partition("=")
            if name not in _CLUSTER_OPTIONS:
                rest.append(arg)
                continue
            given = value if equals else next(waiting, None)
            if given is None:
                raise ConfigError(f"{name} needs a value; see penstock --help")
            setattr(self, _CLUSTER_OPTIONS[name], given)
        return rest


def connection_of(context: typer.Context) -> Connection:
    """Return the connection that a command is to use."""
    cluster: Cluster = context.obj
    return cluster.find()


def end_in_order() -> None:
    """Let SIGTERM end a command like Ctrl-C: resources are closed, and the exit code is 130."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
