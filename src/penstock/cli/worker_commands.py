"""`penstock worker`: a process that runs deployments, and the list of all such processes."""

from __future__ import annotations

import os
from contextlib import suppress
from getpass import getuser
from json import loads
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.interrupts import interruptible
from penstock.cli.jar_progress import fetch_shown
from penstock.cli.options import JsonOption
from penstock.cli.output import print_json, print_table, say
from penstock.control.places import SUPERVISED, WORKER_CONF
from penstock.errors import ConfigError, NotFoundError, nearest

if TYPE_CHECKING:
    from penstock.control.store import ControlStore
    from penstock.pipeline import SparkOptions

app = typer.Typer(
    invoke_without_command=True, help="Run deployments of a server; list and drain workers."
)
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        envvar="PENSTOCK_STORE",
        help="The server's store: an SQLite file of this machine, or postgresql://...",
    ),
]
KeysOption = Annotated[
    str | None,
    typer.Option(
        "--keys", metavar="FILE", envvar="PENSTOCK_STORE_KEYS", help="The keys of the store."
    ),
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="DIR|URI",
        envvar="PENSTOCK_STATE",
        help="Where deployments keep their state: a place that all workers share.",
    ),
]


@app.callback()
def worker(
    context: typer.Context,
    *,
    store: StoreOption = None,
    keys: KeysOption = None,
    state: StateOption = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of Spark, as in 2g.")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="MASTER", envvar="PENSTOCK_SPARK_MASTER", help="Where Spark runs."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
    ] = None,
    lease: Annotated[
        float, typer.Option(min=3, max=600, metavar="SECONDS", help="The length of a lease.")
    ] = 15.0,
) -> None:
    """Run deployments until Ctrl-C, SIGTERM or 'penstock worker drain'.

    For example: penstock worker --store postgresql://penstock@db/penstock --state s3a://lake/state

    All workers of a store share its keys. Ctrl-C lets running batches finish and gives the deployments
    up for other workers; a second Ctrl-C exits immediately, and others take over when the lease ends.
    """
    if context.invoked_subcommand is not None:
        context.obj = (store, keys)
        return
    from penstock.cli.pipelines import spark_options  # noqa: PLC0415
    from penstock.embedded import jars  # noqa: PLC0415
    from penstock.engine import stop_session  # noqa: PLC0415

    # Others see it in this process still; Java and the processes of Spark do not inherit it.
    os.environ.pop(SUPERVISED, None)
    options = spark_options(master, memory, [*inherited_conf(), *(conf or [])])
    fetch_shown(jars.SPARK_GROUPS)
    with interruptible() as interrupted:
        starting = Thread(target=_start_spark, args=[options], name="spark-start", daemon=True)
        starting.start()
        try:
            _run_worker(options, interrupted, (store, keys, lease), state)
        finally:
            starting.join()
            stop_session()


def _start_spark(options: SparkOptions) -> None:
    """Start Spark's session while this process loads its modules: both take some seconds."""
    from penstock.engine import spark_session  # noqa: PLC0415

    with suppress(Exception):  # the worker's own call raises it
        spark_session(options)


def _run_worker(
    options: SparkOptions,
    interrupted: Event,
    place: tuple[str | None, str | None, float],
    state: str | None,
) -> None:
    """Run deployments of the store at a place, with its keys and length of leases."""
    from penstock.connect.worker_settings import worker_from_environment  # noqa: PLC0415
    from penstock.control.places import open_store  # noqa: PLC0415
    from penstock.engine import spark_session  # noqa: PLC0415
    from penstock.worker.starting import Starting  # noqa: PLC0415
    from penstock.worker.worker import Worker  # noqa: PLC0415

    opened = open_store(*place)
    one = Worker(opened, Starting(opened, state, connect=worker_from_environment()))
    try:
        with one.lines.collecting():
            spark_session(options)
            thread = Thread(target=one.run, name="worker")
            thread.start()
            say(f"worker {one.id} runs deployments of {opened.database.place}")
            while thread.is_alive():
                thread.join(0.2)
                if interrupted.is_set():
                    one.drain()
    finally:
        opened.close()


def inherited_conf() -> list[str]:
    """Return the Spark settings that the server chose; processes of Spark do not inherit them."""
    given = os.environ.pop(WORKER_CONF, "") or "[]"
    try:
        return [str(each) for each in loads(given)]
    except (ValueError, TypeError):
        raise ConfigError(
            f"the variable {WORKER_CONF} is not a JSON list of texts as in "
            '["spark.executor.memory=2g"]; unset it, and use --conf'
        ) from None


@app.command("list")
def list_workers(context: typer.Context, json: JsonOption = False) -> None:
    """List the workers of a store."""
    from penstock.control.placement import is_alive  # noqa: PLC0415

    with _opened(context) as store:
        now, workers = store.database.time(), store.workers.all()
        held = [run.worker for run in store.leases.all() if run.is_held(now)]
    rows = [
        {
            "worker": each.id,
            "host": each.host,
            "pid": each.pid,
            "runs": held.count(each.id),
            "load": round(each.load, 2),
            "heartbeat": f"{max(0.0, now - each.seen):.0f} s ago",
            "state": _state(each.draining, is_alive(each, now)),
        }
        for each in workers
    ]
    if json:
        print_json(rows)
    else:
        print_table(list(rows[0]) if rows else ["worker"], [list(row.values()) for row in rows])


@app.command()
def drain(context: typer.Context, worker: Annotated[str, typer.Argument(metavar="WORKER")]) -> None:
    """Let a worker finish its batches, give its deployments up, and end."""
    with _opened(context) as store, store.change():
        if not store.workers.drain(worker):
            known = [each.id for each in store.workers.all()]
            hint = nearest(worker, known) if known else "there are none"
            raise NotFoundError(f"there is no worker {worker!r}; {hint}")
        store.audit.add(actor(), "worker.drain", worker)
    say(f"{worker} gives its deployments up and ends")


def actor() -> str:
    """Return who changes the store from this machine, for the audit log."""
    try:
        return f"command line: {getuser()}"
    except (OSError, KeyError):
        return "command line"


def _state(draining: bool, alive: bool) -> str:
    if not alive:
        return "silent"
    return "draining" if draining else "running"


def _opened(context: typer.Context) -> ControlStore:
    from penstock.control.places import open_store  # noqa: PLC0415

    store, keys = context.obj
    return open_store(store, keys)
