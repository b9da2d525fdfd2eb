"""`penstock jobs`: jobs that are kept, from the command line: make, run, watch and end them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.live import Live

from penstock.cli.fetching import fetch_shown
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, messages, print_json, print_table, say
from penstock.cli.pipelines import interruptible
from penstock.config.secrets import mask_mapping
from penstock.embedded import jars
from penstock.errors import ConfigError, PenstockError

if TYPE_CHECKING:
    from threading import Event

    from penstock.jobs import Job, Store
    from penstock.jobs.definition import Description
    from penstock.jobs.store import Kept

app = typer.Typer(
    no_args_is_help=True,
    help="Jobs: topics through a parser into a table, kept over restarts.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The job's name, or its id.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Default: all jobs.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Stay, and show what changes.")]
# Plain lines of a run that nobody watches come no more often than this.
_LINES_EVERY = 10.0


@app.command("create")
def create_job(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A pipeline definition, or a name.")
    ],
    *,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="A topic to read; may be repeated.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="As 'symbol string, price double'.")
    ] = None,
    parser: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="A parser in Python.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="SINK", help="As 'delta: lake/trades'; default: memory.")
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="earliest|latest", help="Where a new group starts.")
    ] = "earliest",
    batch_size: Annotated[int, typer.Option(help="Hand over when so many wait.")] = 0,
    throttle: Annotated[float, typer.Option(help="Seconds to wait for them at most.")] = 1.0,
    as_table: Annotated[
        bool, typer.Option("--as-table", help="Give the parser tables of records.")
    ] = False,
    delivery: Annotated[
        str | None, typer.Option(metavar="PROMISE", help="exactly-once, at-least-once, ...")
    ] = None,
) -> None:
    """Keep a new job; `penstock jobs run` runs it.

    For example: penstock jobs create trades -t trades --schema "symbol string, price double"
                 --table "delta: lake/trades"

    or, with a pipeline definition: penstock jobs create trades.yaml
    """
    from penstock.jobs.creating import keep  # noqa: PLC0415
    from penstock.jobs.definition import Bounds, describe  # noqa: PLC0415

    given = {"topic": topic, "schema": schema, "parser": parser, "table": table}
    if what.endswith((".yaml", ".yml")):
        said = _from_file(Path(what), {f"--{name}" for name, value in given.items() if value})
    elif not topic:
        raise ConfigError(
            f"which topics does {what!r} read? Give --topic, or a pipeline definition (a .yaml file)"
        )
    else:
        said = describe(
            topic,
            _sink(table) if table else what,
            parser or schema,
            what,
            bounds=Bounds(throttle, batch_size),
            as_table=as_table,
            connection=_connection(context),
            start=start,
            schema=schema,
            delivery=delivery,
        )
    is_new = keep(_store(), said)
    say(
        f"{said.name} is {'kept' if is_new else 'renewed'}; to run it: penstock jobs run {said.name}"
    )


def _from_file(file: Path, others: set[str]) -> Description:
    from penstock.jobs.definition import Description  # noqa: PLC0415
    from penstock.pipeline import read_pipeline  # noqa: PLC0415

    if others:
        raise ConfigError(f"{', '.join(sorted(others))}: a definition says all this itself")
    read_pipeline(file)
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Description.of_pipeline(definition)


def _sink(text: str) -> Any:
    sink = yaml.safe_load(text)
    if not isinstance(sink, dict) or len(sink) != 1:
        raise ConfigError(
            f"--table {text!r} is no sink; write it as in a definition: 'delta: lake/trades', "
            "'jdbc: {url: postgresql://app@db/shop, table: trades}'"
        )
    return sink


def _connection(context: typer.Context) -> Any:
    cluster = context.obj
    if cluster.connection or cluster.brokers:
        cluster.find()
    return cluster.connection or (
        {"bootstrap.servers": cluster.brokers} if cluster.brokers else None
    )


@app.command("list")
def list_jobs(as_json: JsonOption = False) -> None:
    """List the jobs: state, counts, lag."""
    _print(_store().all(), as_json)


@app.command("stats")
def job_stats(names: Names = None, watch: Watch = False, as_json: JsonOption = False) -> None:
    """Show what jobs have done: the columns of the DolphinDB plugin's getJobStat, and more.

    For example: penstock jobs stats --watch
    """
    store = _store()
    if watch:
        return _watched(store, names or ())
    from penstock.jobs.statistics import table_of  # noqa: PLC0415

    rows = table_of(_chosen(store, names or ())).to_dict("records")
    shown = [{key: _cell(value) for key, value in row.items()} for row in rows]
    if as_json:
        return print_json(shown)
    for row in shown:
        print_table(("name", "value"), row.items())
    return None


@app.command("show")
def show_job(name: Name, as_json: JsonOption = False) -> None:
    """Show a job's definition, secrets masked."""
    from penstock.jobs.keeping import shown  # noqa: PLC0415

    (found,) = _chosen(_store(), [name])
    definition = mask_mapping(shown(found.definition))
    if as_json:
        return print_json(definition)
    return typer.echo(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True), nl=False)


@app.command("logs")
def job_logs(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay, and print more.")] = False,
) -> None:
    """Print what happened to a job."""
    store = _store()
    (job,) = _chosen(store, [name])
    last = 0
    with suppress(KeyboardInterrupt):
        while True:
            last = _print_events(store, job.name, last)
            if not follow:
                return
            time.sleep(0.5)


def _print_events(store: Store, name: str, last: int) -> int:
    for event in store.events(name, after=last):
        last = event.number
        at = datetime.fromtimestamp(event.at).astimezone().isoformat(" ", "milliseconds")
        typer.echo(f"{at} {event.text}")
    return last


@app.command("cancel")
def cancel_jobs(
    names: Annotated[list[str], typer.Argument(metavar="NAME...")], yes: YesOption = False
) -> None:
    """End jobs and forget them; their tables stay."""
    from penstock.jobs import find_job  # noqa: PLC0415

    store = _store()
    found = [find_job(name, store) for name in names]
    if not yes:
        ask_first(f"end and forget {', '.join(job.name for job in found)}?", "nothing was ended")
    for job in found:
        job.cancel()
        say(f"{job.name} is cancelled")


@app.command("run")
def run_jobs(names: Names = None) -> None:
    """Run jobs in the foreground until Ctrl-C: all that are kept, also those made meanwhile.

    Ctrl-C lets the running batches finish and stops; the next run goes on from there.
    """
    from penstock.engine import stop_session  # noqa: PLC0415
    from penstock.jobs.keeper import keeper  # noqa: PLC0415

    store = _store()
    _chosen(store, names or ())
    fetch_shown(jars.SPARK_GROUPS)
    try:
        with interruptible() as interrupted:
            _run(store, names or (), interrupted)
            keeper.stop_all()
    finally:
        stop_session()
    if interrupted.is_set():
        raise typer.Exit(130)


def _run(store: Store, names: Sequence[str], interrupted: Event) -> None:
    started: dict[str, Job] = {}
    console = messages()
    say(f"running {', '.join(names) if names else 'all jobs'} of {store.place}; Ctrl-C stops")
    with Live(console=console, refresh_per_second=4, transient=not console.is_terminal) as live:
        told = 0.0
        while not interrupted.is_set():
            _start_more(store, names, started, interrupted)
            if names and all(job.wait(0) for job in started.values()):
                return
            jobs = [kept for kept in store.all() if kept.name in started]
            if console.is_terminal:
                live.update(_table(jobs))
            elif time.monotonic() - told >= _LINES_EVERY:
                told = time.monotonic()
                _say_lines(jobs)
            interrupted.wait(1.0)


def _start_more(
    store: Store, names: Sequence[str], started: dict[str, Job], interrupted: Event
) -> None:
    from penstock.jobs import Job  # noqa: PLC0415

    for kept in store.all():
        wanted = not names or kept.name in names or kept.id in names
        if kept.name in started or not wanted or kept.is_alive or interrupted.is_set():
            continue
        started[kept.name] = job = Job(store, kept.name)
        try:
            job.start()
        # One that cannot start does not keep the others from running.
        except PenstockError as error:
            store.failed(kept.name, str(error))
            store.note(kept.name, f"cannot start: {error}")
            say(f"{kept.name} cannot start: {error}")


def _watched(store: Store, names: Sequence[str]) -> None:
    with suppress(KeyboardInterrupt), Live(console=messages(), refresh_per_second=4) as live:
        while True:
            live.update(_table(_chosen(store, names)))
            time.sleep(1.0)


def _table(jobs: Sequence[Kept]) -> Any:
    from penstock.jobs.view import as_table  # noqa: PLC0415

    return as_table(jobs)


def _say_lines(jobs: Sequence[Kept]) -> None:
    from penstock.jobs.view import as_line  # noqa: PLC0415

    for job in jobs:
        say(as_line(job))


def _print(jobs: Sequence[Kept], as_json: bool) -> None:
    rows = [
        {
            "name": job.name,
            "id": job.id,
            "state": job.shown_state,
            "processed": job.records - job.failed,
            "failed": job.failed,
            "lag": job.lag,
            "rows_per_second": round(job.rate, 1),
            "table": _sink_name(job.definition["sink"]),
            "last_error": job.last_error,
        }
        for job in jobs
    ]
    if as_json:
        return print_json(rows)
    columns = ("name", "id", "state", "processed", "failed", "lag", "rows_per_second", "table")
    print_table(columns, [[row[column] for column in columns] for row in rows])
    if not rows:
        say("no job is kept; penstock jobs create makes one")
    return None


def _sink_name(sink: Any) -> str:
    return sink if isinstance(sink, str) else str(next(iter(sink)))


def _chosen(store: Store, names: Sequence[str]) -> list[Kept]:
    return [store.find(name) for name in names] or store.all()


def _cell(value: Any) -> Any:
    import pandas as pd  # noqa: PLC0415

    if pd.isna(value):
        return None
    return value.isoformat() if isinstance(value, pd.Timestamp) else value


def _store() -> Store:
    from penstock.jobs import Store  # noqa: PLC0415

    return Store.default()
