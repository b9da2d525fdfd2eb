"""`penstock broker`: a local Kafka in one command, in the foreground or detached."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.fetching import fetch_shown
from penstock.cli.follow import follow
from penstock.cli.options import JsonOption
from penstock.cli.output import messages, print_json, print_table, say, write
from penstock.embedded import Broker, SchemaRegistry, Security, running
from penstock.embedded.process import tail
from penstock.embedded.running import Running
from penstock.embedded.security import Mechanism, Protocol
from penstock.errors import BrokerUnavailableError, ConfigError, TerminalError

app = typer.Typer(no_args_is_help=True, help="Start and stop a local Kafka broker.")

NOT_RUNNING = "no broker is running; start one with 'penstock broker start'"


@app.command()
def start(
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running; its data is kept.")
    ] = False,
    nodes: Annotated[int, typer.Option(help="1 or 3.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65533, help="The first node's; 0: any.")] = 9092,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the data here; default: temporary.")
    ] = None,
    security: Annotated[Protocol, typer.Option(help="What clients speak.")] = "plaintext",
    mechanism: Annotated[Mechanism, typer.Option(help="How clients log in, with SASL.")] = "PLAIN",
    registry: Annotated[
        bool, typer.Option("--registry", help="A schema registry beside it.")
    ] = False,
) -> None:
    """Start a broker and show how to connect; Ctrl-C stops it, unless --detach.

    For example: penstock broker start --detach

    penstock broker start --port 0 --security sasl_ssl --mechanism SCRAM-SHA-512

    Other commands then reach it through the connection 'embedded', which is the default where no
    other one is set up.
    """
    if nodes not in (1, 3):
        raise ConfigError(f"--nodes is {nodes}; allowed: 1, 3")
    broker = Broker(
        nodes=nodes,
        data_dir=data or (running.default_data() if detach else None),
        port=port,
        security=Security(protocol=security, mechanism=mechanism),
        detached=detach,
    )
    beside = SchemaRegistry(detached=detach) if registry else None
    with running.starting():
        fetch_shown(["broker", "registry"] if registry else ["broker"])
        found = _start(broker, beside)
    _show(found)
    if not detach:
        _stay(broker, beside)


def _start(broker: Broker, registry: SchemaRegistry | None) -> Running:
    with messages().status("starting Kafka ..."), _stopping_on_error(broker, registry):
        broker.start()
        if registry:
            registry.start()
        return running.remember(broker, registry)


@contextmanager
def _stopping_on_error(broker: Broker, registry: SchemaRegistry | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _stop(broker, registry)
        raise


def _stop(broker: Broker, registry: SchemaRegistry | None) -> None:
    if registry:
        registry.stop()
    broker.stop()


def _stay(broker: Broker, registry: SchemaRegistry | None) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say("Ctrl-C stops it")
    try:
        while all(child.running for child in broker.children):
            time.sleep(0.2)
    except KeyboardInterrupt:
        say("stopping ...")
        _stop(broker, registry)
        running.forget()
        return
    if running.find() is not None:
        _stop(broker, registry)
        running.forget()
        lines = "\n".join(tail(broker.log_path, 8))
        raise TerminalError(f"Kafka ended by itself; the last lines of {broker.log_path}:\n{lines}")


@app.command()
def stop() -> None:
    """Stop the running broker (and its schema registry)."""
    stopped = running.stop()
    if stopped is None:
        return say("no broker is running")
    kept = "" if stopped.temporary else f"; its data stays in {stopped.data_dir}"
    return say(f"stopped {stopped.bootstrap_servers}{kept}")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Show the running broker; exit code 4 when there is none."""
    found = running.find()
    if as_json:
        print_json({"running": found is not None, **(found.as_dict() if found else {})})
    elif found:
        _show(found)
        print_table(
            ("program", "process", "state", "log"),
            [(p.name, p.pid, "running" if p.alive else "ended", p.log) for p in found.programs],
        )
    else:
        say(NOT_RUNNING)
    if not found:
        raise typer.Exit(BrokerUnavailableError.exit_code)


def _show(found: Running) -> None:
    say(f"Kafka at     {found.bootstrap_servers} ({found.protocol})")
    if found.registry_url:
        say(f"Registry at  {found.registry_url}")
    say(f"Data in      {found.data_dir}{' (temporary)' if found.temporary else ''}")
    say("Connection   embedded (settings with secrets: " + str(running.connection_path()) + ")")
    say("Try          penstock -c embedded topics list")


@app.command()
def logs(
    follow_it: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("-n", min=0, help="How many of the last lines.")] = 50,
    program: Annotated[str, typer.Option(help="node-1, node-2, node-3 or registry.")] = "node-1",
) -> None:
    """Print the log of the running broker.

    For example: penstock broker logs --follow
    """
    found = running.find()
    if found is None:
        raise BrokerUnavailableError(NOT_RUNNING)
    by_name = {each.name: Path(each.log) for each in found.programs}
    if program not in by_name:
        raise ConfigError(f"--program is {program!r}; allowed: {', '.join(by_name)}")
    log = by_name[program]
    for line in tail(log, lines):
        write(f"{line}\n".encode())
    if follow_it:
        follow(log, write)
