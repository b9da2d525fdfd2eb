"""`penstock connect standalone`: the API and one worker in this process, over a store of its own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import typer

from penstock.cli.interrupts import INTERRUPTED, interruptible
from penstock.cli.output import say
from penstock.cli.pipelines import spark_options
from penstock.cli.serve_options import ServeOptions, require_worker
from penstock.config.directories import data_dir, make_private
from penstock.connect.connector_files import ConnectorFile, read_connector_file
from penstock.connect.connectors import CATALOG
from penstock.connect.validation import with_name
from penstock.connect.worker_settings import WorkerSettings
from penstock.control.places import open_store
from penstock.control.roles import Access, Grant, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired
from penstock.engine import spark_session, stop_session
from penstock.errors import ConfigError, SetupError
from penstock.retry import wait_for
from penstock.server.api_server import ApiServer
from penstock.server.app import create_app
from penstock.server.connect import connector_changes
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.connect.connector_store import ConnectorStore
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers
from penstock.server.listening import listen
from penstock.worker.starting import Starting
from penstock.worker.worker import Worker

_ID = "standalone"
_ACCESS = Access("standalone", (Grant(Role.ADMIN),))


def run_standalone(settings: WorkerSettings, options: ServeOptions, files: Sequence[Path]) -> None:
    """Run the connectors of files until Ctrl-C; their batches end first."""
    given = [read_connector_file(file) for file in files]
    _require_names_once(given)
    api_settings = replace(options.settings(), connect=settings.defaults)
    require_worker()
    with (
        _owned(standalone_folder(settings.offsets_file)) as folder,
        open_store(str(folder / "control.sqlite"), str(folder / "control.keys")) as store,
        closing(Connections(registry=options.registry_options())) as connections,
    ):
        api_settings.require_safe(users=sum(not user.disabled for user in store.users.all()))
        socket = listen(api_settings.host, options.port or 0)
        starting = Starting(store, str(folder / "states"), connect=settings.defaults)
        finish_removals(store, starting)
        store_connectors(ConnectorStore(store, _ACCESS, CATALOG, settings.defaults), given)
        app = create_app(store, api_settings, kafka_routers(connections, store))
        api = ApiServer(app, socket, options.tls())
        worker = Worker(store, starting)
        say(f"the connectors are stored in {folder}, with their states")
        _run(worker, api, options, len(given))


def _run(worker: Worker, api: ApiServer, options: ServeOptions, count: int) -> None:
    with interruptible() as interrupted, worker.lines.collecting():
        api.start()
        try:
            spark_session(spark_options(None, options.memory, [*options.conf]))
            thread = Thread(target=worker.run, name="worker")
            thread.start()
            say(f"serving {options.url(api.port)}, connectors of files: {count}; Ctrl-C ends them")
            while thread.is_alive():
                thread.join(0.2)
                if interrupted.is_set() or not api.is_running():
                    worker.drain()
        finally:
            api.stop()
            stop_session()
    if interrupted.is_set():
        raise typer.Exit(INTERRUPTED)
    raise SetupError(
        "the API or the worker ended by itself; the log has the reason. Start it again"
    )


def standalone_folder(offsets_file: Path | None) -> Path:
    """Return the folder of the store: next to the file for offsets, whose name it has, or the user's own.

    >>> standalone_folder(Path("/var/lib/connect.offsets")).as_posix()
    '/var/lib/connect.offsets.penstock'
    """
    if offsets_file is None:
        return data_dir() / "connect-standalone"
    file = offsets_file.expanduser().absolute()
    return file.with_name(f"{file.name}.penstock")


@contextmanager
def _owned(folder: Path) -> Iterator[Path]:
    """Make the folder for this user alone, and refuse a second process."""
    try:
        make_private(folder)
    except OSError as error:
        raise ConfigError(f"the folder {folder} cannot be made: {error.strerror}") from None
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise ConfigError(
            f"the folder {folder} is of another user; give another offset.storage.file.filename"
        )
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(
                f"another worker uses the folder {folder}; stop it, or give another "
                "offset.storage.file.filename"
            ) from None
        yield folder


def finish_removals(store: ControlStore, starting: Starting) -> None:
    """Remove connectors whose removal an earlier process did not finish: files may name them again.

    The process that may hold their leases has ended, because it had the folder for itself.
    """
    for row in store.deployments.all():
        if row.desired is not Desired.DELETED:
            continue
        claimed = wait_for(
            partial(store.leases.claim, row.name, _ID), within=2 * store.leases.length, every=0.2
        )
        if claimed is not None:
            starting.clean(row)
            store.deployments.remove(row.name, _ID, claimed.token)


def store_connectors(connectors: ConnectorStore, given: Sequence[ConnectorFile]) -> None:
    """Store the connectors of files; stop the others: in Connect a new process would not have them."""
    checked = [_checked(connectors, each) for each in given]
    for file, config in zip(given, checked, strict=True):
        state = file.initial_state or Desired.RUNNING.name
        before = connectors.row(file.name)
        connectors.put(file.name, config, before, Desired[state])
    names = {file.name for file in given}
    for each in connectors.all():
        if each.name not in names and each.row.desired is not Desired.STOPPED:
            connectors.set_desired(each, Desired.STOPPED)
            say(f"connector {each.name} of an earlier start is stopped: no file names it")


def _checked(connectors: ConnectorStore, file: ConnectorFile) -> dict[str, str]:
    try:
        return connector_changes.checked(connectors, with_name(file.config, file.name))
    except ConnectError as error:
        raise ConfigError(f"{file.path}: {error}") from None


def _require_names_once(given: Sequence[ConnectorFile]) -> None:
    seen: dict[str, Path] = {}
    for file in given:
        if (other := seen.setdefault(file.name, file.path)) != file.path:
            raise ConfigError(f"{other} and {file.path} are both of the connector {file.name!r}")
