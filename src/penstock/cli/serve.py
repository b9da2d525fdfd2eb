"""`penstock serve`: the API, and the worker processes of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from penstock.cli.interrupts import INTERRUPTED
from penstock.cli.output import say
from penstock.cli.serve_options import ServeOptions, merged, require_worker
from penstock.cli.worker_commands import KeysOption, StateOption, StoreOption
from penstock.connect.worker_settings import worker_from_environment
from penstock.control.places import KEYS, STORE, open_store, store_place
from penstock.control.store import ControlStore
from penstock.errors import TerminalError
from penstock.server.api_server import ApiServer
from penstock.server.app import create_app
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers
from penstock.server.listening import listen
from penstock.server.supervisor import Supervisor, worker_command

_LOOK_EVERY = 0.5


def serve(
    *,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen; default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Default: 8083; 0: any that is free.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="Worker processes to start; default: 1; 0: API only."),
    ] = None,
    store: StoreOption = None,
    keys: KeysOption = None,
    state: StateOption = None,
    tls_cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate and its chain (PEM).")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="Its key (PEM).")] = None,
    behind_proxy: Annotated[
        bool | None, typer.Option("--behind-proxy", help="A proxy with TLS forwards requests.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which it is called; may be repeated."),
    ] = None,
    login: Annotated[
        bool | None, typer.Option("--login", help="Require a login, also on this machine.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of Spark in each worker, as in 2g.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark setting of workers; may be repeated."),
    ] = None,
    registry: Annotated[
        str | None, typer.Option(metavar="URL", help="The schema registry, for /subjects.")
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request (with -v).")
    ] = False,
) -> None:
    """Serve the API, and run deployments in worker processes.

    For example: penstock serve, and in another terminal: penstock apply orders.yaml

    For other machines: penstock serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    --allowed-host penstock.example (add users first: penstock users add)

    Ctrl-C ends the workers after their running batches, then the API; a second Ctrl-C ends all
    immediately. SIGTERM ends the API alone: the workers go on, and the next server finds them.
    """
    options = merged(
        ServeOptions(
            host, port, workers, store, keys, state, tls_cert, tls_key, behind_proxy,
            tuple(allowed_host or ()), login, memory, tuple(conf or ()), registry,
        )
    )  # fmt: skip
    run_server(options, access_log=access_log)


def run_server(options: ServeOptions, *, access_log: bool = False) -> None:
    """Serve the API, and supervise worker processes, until a signal ends it."""
    tls, subjects = options.tls(), options.registry_options()
    settings = replace(options.settings(), connect=worker_from_environment())
    if settings.workers:
        require_worker()
    with (
        open_store(options.store, options.keys) as opened,
        closing(Connections(registry=subjects)) as connections,
    ):
        settings.require_safe(users=sum(not user.disabled for user in opened.users.all()))
        socket = listen(settings.host, options.port or 0)
        app = create_app(opened, settings, kafka_routers(connections, opened))
        api = ApiServer(app, socket, tls, access_log=access_log)
        supervisor = supervisor_of(opened, options, settings.workers)
        with signals(supervisor) as wanted:
            api.start()
            supervisor.begin()
            _say_where(options, api.port, supervisor)
            while not wanted.is_set() and api.is_running():
                wanted.event.wait(_LOOK_EVERY)
            failed = not wanted.is_set()
            _end(api, supervisor, wanted)
    if failed:
        raise TerminalError("the API ended by itself; the log has the reason. Start it again")
    if wanted.interrupted:
        raise typer.Exit(INTERRUPTED)


@dataclass
class Wanted:
    """What a signal asked for."""

    event: Event
    interrupted: bool = False

    def is_set(self) -> bool:
        """Return whether a signal came."""
        return self.event.is_set()


@contextmanager
def signals(supervisor: Supervisor) -> Iterator[Wanted]:
    """Note the first signal; end the process and its workers at the second one."""
    wanted = Wanted(Event())

    def ask(number: int, _frame: object) -> None:
        if wanted.is_set():
            if wanted.interrupted and number == signal.SIGINT:
                supervisor.stop_now()
            os._exit(INTERRUPTED)
        wanted.interrupted = number == signal.SIGINT
        wanted.event.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is with nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield wanted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def supervisor_of(store: ControlStore, options: ServeOptions, count: int) -> Supervisor:
    """Return the supervisor of the workers of a store."""
    # A worker goes on in another folder, maybe: paths are absolute.
    environment = {STORE: str(store.database.file or store_place(options.store))}
    if options.keys:
        environment[KEYS] = str(Path(options.keys).absolute())
    environment |= options.worker_environment()
    return Supervisor(store, count, worker_command(*options.worker_options()), environment)


def _say_where(options: ServeOptions, port: int, supervisor: Supervisor) -> None:
    url = options.url(port)
    say(f"serving {url} (the API is below /api/v1, and described at {url}/api/docs)")
    if supervisor.count:
        say(f"deployments run here, workers: {supervisor.count}; Ctrl-C ends everything")
    else:
        say("no workers are started here; start them with 'penstock worker'")


def _end(api: ApiServer, supervisor: Supervisor, wanted: Wanted) -> None:
    if wanted.interrupted:
        say("stopping after the current batches; press Ctrl-C again to exit immediately")
        supervisor.stop()
    else:
        supervisor.leave()
        pids = ", ".join(str(pid) for pid in supervisor.pids())
        if pids:
            say(f"the API ends; the workers (process {pids}) go on, and the next server finds them")
    api.stop()
