"""`penstock jobs`: create, run, watch and cancel stored jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.live import Live

from penstock import engine, jobs
from penstock.cli.interrupts import interruptible
from penstock.cli.jar_progress import fetch_shown
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, messages, print_json, print_table, say
from penstock.config.printable import printable
from penstock.config.secrets import mask_mapping
from penstock.control.store.rows import FAILED, Desired
from penstock.embedded import jars
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from threading import Event

    from penstock.jobs.job_definition import Description
    from penstock.jobs.job_store import JobRow

app = typer.Typer(
    no_args_is_help=True, help="Jobs: topics through a parser into a table; they survive restarts."
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The job's name, or its id.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Default: all jobs.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Keep updating until Ctrl-C.")]
# Minimum seconds between plain lines of a run without a terminal.
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
    batch_size: Annotated[int, typer.Option(help="Start a batch when this many wait.")] = 0,
    throttle: Annotated[float, typer.Option(help="Maximum seconds to wait for them.")] = 1.0,
    as_table: Annotated[
        bool, typer.Option("--as-table", help="Pass tables of records to the parser.")
    ] = False,
    delivery: Annotated[
        str | None, typer.Option(metavar="DELIVERY", help="exactly-once, at-least-once, ...")
    ] = None,
) -> None:
    """Store a new job; `penstock jobs run` runs it.

    For example: penstock jobs create trades -t trades --schema "symbol string, price double"
                 --table "delta: lake/trades"

    or, with a pipeline definition: penstock jobs create trades.yaml
    """
    from penstock.jobs.job_definition import Bounds, describe  # noqa: PLC0415
    from penstock.jobs.job_functions import store_job  # noqa: PLC0415

    given = {"topic": topic, "schema": schema, "parser": parser, "table": table}
    if what.endswith((".yaml", ".yml")):
        description = _from_file(
            Path(what), {f"--{name}" for name, value in given.items() if value}
        )
    elif not topic:
        raise ConfigError(
            f"which topics does {what!r} read? Give --topic, or a pipeline definition (a .yaml file)"
        )
    else:
        description = describe(
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
    is_new = store_job(jobs.Store.default(), description, Desired.RUNNING)
    say(
        f"{description.name} is {'created' if is_new else 'updated'}; "
        f"to run it: penstock jobs run {description.name}"
    )


def _from_file(file: Path, others: set[str]) -> Description:
    from penstock.jobs.job_definition import Description  # noqa: PLC0415
    from penstock.pipeline import read_pipeline  # noqa: PLC0415

    if others:
        raise ConfigError(
            f"{', '.join(sorted(others))}: not allowed with a definition, which has its own"
        )
    read_pipeline(file)
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Description.of_pipeline(definition)


def _sink(text: str) -> Any:
    sink = yaml.safe_load(text)
    if not isinstance(sink, dict) or len(sink) != 1:
        raise ConfigError(
            f"--table {text!r} is not a sink; write it as in a definition: 'delta: lake/trades', "
            "'database: {url: postgresql://app@db/shop, table: trades}'"
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
    """List the jobs: state, counters, lag."""
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
        for job in jobs.Store.default().all()
    ]
    if as_json:
        return print_json(rows)
    columns = ("name", "id", "state", "processed", "failed", "lag", "rows_per_second", "table")
    print_table(columns, [[row[column] for column in columns] for row in rows])
    if not rows:
        say("there are no jobs; penstock jobs create makes one")
    return None


@app.command("stats")
def job_stats(names: Names = None, watch: Watch = False, as_json: JsonOption = False) -> None:
    """Show the counters of jobs: the columns of the DolphinDB plugin's getJobStat, and more.

    For example: penstock jobs stats --watch
    """
    from penstock.jobs.job_display import as_table  # noqa: PLC0415
    from penstock.jobs.statistics import table_of  # noqa: PLC0415

    store = jobs.Store.default()
    if watch:
        with suppress(KeyboardInterrupt), Live(console=messages(), refresh_per_second=4) as live:
            while True:
                live.update(as_table(_chosen(store, names or ())))
                time.sleep(1.0)
        return None
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
    from penstock.control.stored_functions import shown  # noqa: PLC0415

    (job,) = _chosen(jobs.Store.default(), [name])
    definition = mask_mapping(shown(job.definition))
    if as_json:
        return print_json(definition)
    return typer.echo(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True), nl=False)


@app.command("logs")
def job_logs(
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new events.")
    ] = False,
) -> None:
    """Print the events of a job."""
    store = jobs.Store.default()
    (job,) = _chosen(store, [name])
    last = 0
    with suppress(KeyboardInterrupt):
        while True:
            for event in store.events(job.name, after=last):
                last = event.number
                at = datetime.fromtimestamp(event.at).astimezone().isoformat(" ", "milliseconds")
                typer.echo(f"{at} {printable(event.text)}")
            if not follow:
                return
            time.sleep(0.5)


@app.command("cancel")
def cancel_jobs(
    names: Annotated[list[str], typer.Argument(metavar="NAME...")], yes: YesOption = False
) -> None:
    """End jobs and delete them; their tables are kept."""
    store = jobs.Store.default()
    chosen = [jobs.find_job(name, store) for name in names]
    if not yes:
        listed = ", ".join(job.name for job in chosen)
        ask_first(f"end and delete {listed}?", "nothing was cancelled")
    for job in chosen:
        job.cancel()
        if store.get(job.name) is None:
            say(f"{job.name} is cancelled")
        else:
            say(f"{job.name} is to be cancelled; the process that runs it ends it")


@app.command("run")
def run_jobs(names: Names = None) -> None:
    """Run stored jobs in the foreground until Ctrl-C, including those that are created meanwhile.

    Ctrl-C lets the current batches finish and stops; the next run resumes from there. A second Ctrl-C
    exits immediately: the next run repeats those batches.
    """
    store = jobs.Store.default()
    chosen = [job.name for job in _chosen(store, names)] if names else []
    fetch_shown(jars.SPARK_GROUPS)
    with interruptible() as interrupted, ExitStack() as stack:
        stack.callback(engine.stop_session)
        _run(store, chosen, interrupted)
        store.hosting.leave()
    if interrupted.is_set():
        raise typer.Exit(130)


def _run(store: jobs.Store, names: Sequence[str], interrupted: Event) -> None:
    from penstock.jobs.job_display import as_line, as_table  # noqa: PLC0415

    console = messages()
    say(f"running {', '.join(names) if names else 'all jobs'} of {store.place}; Ctrl-C stops")
    for job in _chosen(store, names):
        _ask_to_run(store, job)
    store.hosting.take(names)
    failures: dict[str, str | None] = {}
    with Live(console=console, refresh_per_second=4, transient=not console.is_terminal) as live:
        last_printed = 0.0
        while not interrupted.is_set():
            rows = [job for job in store.all() if not names or job.name in names]
            _report_failures(rows, failures)
            if names and not any(_should_run(job) for job in rows):
                return
            if console.is_terminal:
                live.update(as_table(rows))
            elif time.monotonic() - last_printed >= _LINES_EVERY:
                last_printed = time.monotonic()
                for row in rows:
                    say(as_line(row))
            interrupted.wait(1.0)


def _ask_to_run(store: jobs.Store, job: JobRow) -> None:
    """Ask for a job that is stopped, and once more for one that has failed."""
    if job.is_alive or job.desired is Desired.DELETED:
        return
    if job.desired is not Desired.RUNNING:
        store.want(job.name, Desired.RUNNING)
    elif job.state == FAILED:
        store.control.deployments.restart(job.name, by=store.user)


def _should_run(job: JobRow) -> bool:
    return job.desired is Desired.RUNNING and job.state != FAILED


def _report_failures(rows: Sequence[JobRow], reported: dict[str, str | None]) -> None:
    """Print why jobs have failed; the others go on."""
    for job in rows:
        failure = job.last_error if job.state == FAILED and not job.is_alive else None
        if failure is not None and reported.get(job.name) != failure:
            say(f"{job.name} has failed: {failure}")
        reported[job.name] = failure


def _sink_name(sink: Any) -> str:
    return sink if isinstance(sink, str) else str(next(iter(sink)))


def _chosen(store: jobs.Store, names: Sequence[str]) -> list[JobRow]:
    return [store.find(name) for name in names] or store.all()


def _cell(value: Any) -> Any:
    import pandas as pd  # noqa: PLC0415

    if pd.isna(value):
        return None
    return value.isoformat() if isinstance(value, pd.Timestamp) else value
