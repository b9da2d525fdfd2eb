"""`penstock broker`: a local Kafka in one command, in the foreground or detached."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.jar_progress import fetch_shown
from penstock.cli.options import JsonOption, end_in_order
from penstock.cli.output import messages, print_json, print_table, say, write
from penstock.config.printable import printable_lines
from penstock.embedded import Broker, SchemaRegistry, Security, running_broker
from penstock.embedded.process import tail
from penstock.embedded.running_broker import Running
from penstock.embedded.security import Mechanism, Protocol
from penstock.errors import BrokerUnavailableError, ConfigError, TerminalError

app = typer.Typer(no_args_is_help=True, help="Start and stop a local Kafka broker.")

NOT_RUNNING = "no broker is running; start one with 'penstock broker start'"
_LOOK_EVERY = 0.2


@app.command()
def start(
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running; keep its data.")
    ] = False,
    nodes: Annotated[int, typer.Option(help="1 or 3.")] = 1,
    port: Annotated[
        int, typer.Option(min=0, max=65533, help="Port of the first node; 0: any.")
    ] = 9092,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the data here; default: temporary.")
    ] = None,
    security: Annotated[Protocol, typer.Option(help="Security protocol of clients.")] = "plaintext",
    mechanism: Annotated[Mechanism, typer.Option(help="SASL mechanism of clients.")] = "PLAIN",
    registry: Annotated[
        bool, typer.Option("--registry", help="Start a schema registry, too.")
    ] = False,
) -> None:
    """Start a broker and show how to connect; Ctrl-C stops it, unless --detach.

    For example: penstock broker start --detach

    penstock broker start --port 0 --security sasl_ssl --mechanism SCRAM-SHA-512

    Other commands then use it as the connection 'embedded', which is the default unless another
    one is configured.
    """
    if nodes not in (1, 3):
        raise ConfigError(f"--nodes is {nodes}; allowed: 1, 3")
    broker = Broker(
        nodes=nodes,
        data_dir=data or (running_broker.default_data() if detach else None),
        port=port,
        security=Security(protocol=security, mechanism=mechanism),
        detached=detach,
    )
    schema_registry = SchemaRegistry(detached=detach) if registry else None
    with running_broker.starting():
        fetch_shown(["broker", "registry"] if registry else ["broker"])
        running = _start(broker, schema_registry)
    _show(running)
    if not detach:
        _stay(broker, schema_registry)


def _start(broker: Broker, registry: SchemaRegistry | None) -> Running:
    with messages().status("starting Kafka ..."):
        try:
            broker.start()
            if registry:
                registry.start()
            return running_broker.remember(broker, registry)
        except BaseException:
            _stop(broker, registry)
            raise


def _stop(broker: Broker, registry: SchemaRegistry | None) -> None:
    if registry:
        registry.stop()
    broker.stop()


def _stay(broker: Broker, registry: SchemaRegistry | None) -> None:
    end_in_order()
    say("Ctrl-C stops it")
    try:
        while all(child.running for child in broker.children):
            time.sleep(0.2)
    except KeyboardInterrupt:
        say("stopping ...")
        _stop(broker, registry)
        running_broker.forget()
        return
    if running_broker.find() is not None:
        _stop(broker, registry)
        running_broker.forget()
        lines = "\n".join(tail(broker.log_path, 8))
        raise TerminalError(
            f"Kafka exited unexpectedly; the last lines of {broker.log_path}:\n{lines}"
        )


@app.command()
def stop() -> None:
    """Stop the running broker (and its schema registry)."""
    stopped = running_broker.stop()
    if stopped is None:
        return say("no broker is running")
    data = "" if stopped.temporary else f"; its data is kept in {stopped.data_dir}"
    return say(f"stopped {stopped.bootstrap_servers}{data}")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Show the running broker; exit code 4 when there is none."""
    running = running_broker.find()
    if as_json:
        print_json({"running": running is not None, **(running.as_dict() if running else {})})
    elif running:
        _show(running)
        print_table(
            ("program", "process", "state", "log"),
            [(p.name, p.pid, "running" if p.alive else "ended", p.log) for p in running.programs],
        )
    else:
        say(NOT_RUNNING)
    if not running:
        raise typer.Exit(BrokerUnavailableError.exit_code)


def _show(running: Running) -> None:
    say(f"Kafka at     {running.bootstrap_servers} ({running.protocol})")
    if running.registry_url:
        say(f"Registry at  {running.registry_url}")
    say(f"Data in      {running.data_dir}{' (temporary)' if running.temporary else ''}")
    say(f"Connection   embedded (settings with secrets: {running_broker.connection_path()})")
    say("Try          penstock -c embedded topics list")


@app.command()
def logs(
    follow_it: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until Ctrl-C.")
    ] = False,
    lines: Annotated[int, typer.Option("-n", min=0, help="Number of last lines.")] = 50,
    program: Annotated[str, typer.Option(help="node-1, node-2, node-3 or registry.")] = "node-1",
) -> None:
    """Print the log of the running broker.

    For example: penstock broker logs --follow
    """
    running = running_broker.find()
    if running is None:
        raise BrokerUnavailableError(NOT_RUNNING)
    by_name = {each.name: Path(each.log) for each in running.programs}
    if program not in by_name:
        raise ConfigError(f"--program is {program!r}; allowed: {', '.join(by_name)}")
    log = by_name[program]
    for line in tail(log, lines):
        write(f"{printable_lines(line)}\n".encode())
    if follow_it:
        _follow(log)


def _follow(log: Path) -> None:
    """Print what is appended from now on, also to the file after a rotation, until Ctrl-C."""
    file = log.open("rb")
    try:
        file.seek(0, 2)
        while True:
            if data := file.read():
                write(data)
            elif _is_rotated(log, file.fileno()):
                file.close()
                file = log.open("rb")
            else:
                time.sleep(_LOOK_EVERY)
    except KeyboardInterrupt:
        return
    finally:
        file.close()


def _is_rotated(log: Path, descriptor: int) -> bool:
    try:
        return log.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
