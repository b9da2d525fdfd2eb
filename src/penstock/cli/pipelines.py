"""`penstock run`, `check`, `schema` and `setup`: pipelines from the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from penstock.cli.fetching import fetch_shown
from penstock.cli.options import Cluster, JsonOption
from penstock.cli.output import print_json, say
from penstock.embedded import jars
from penstock.embedded.java import find_java
from penstock.embedded.lock import groups as locked_groups
from penstock.embedded.lock import locked
from penstock.errors import ConfigError, DefinitionError
from penstock.pipeline import Pipeline, read_pipeline

Definition = Annotated[Path, typer.Argument(metavar="FILE", help="A pipeline definition (YAML).")]


def run(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Pipeline definitions (YAML).")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="End when what is there now is in the table.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            envvar="PENSTOCK_SPARK_MASTER",
            help="Where Spark runs, instead of the definition's spark.master.",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be given several times."),
    ] = None,
) -> None:
    """Run pipelines until Ctrl-C, or, with --once, until what is there now is done.

    For example: penstock run trades.yaml --once

    Several share one engine, fairly, and one that fails leaves the others alone: penstock run *.yaml

    On a cluster: penstock run trades.yaml --master spark://spark:7077

    Ctrl-C lets the running batch finish, commits it and stops; the next run goes on from there.
    """
    pipelines = [on_the_cluster_given(read_pipeline(file), context.obj) for file in files]
    pipelines = [on_the_spark_given(one, master, conf or []) for one in pipelines]
    _refuse_namesakes(files, pipelines)
    # Spark's parts are imported only when the definition is right: a mistake is told at once.
    from penstock.cli.live import summary, watch  # noqa: PLC0415
    from penstock.engine import Running, start, stop_session  # noqa: PLC0415

    fetch_shown(jars.SPARK_GROUPS)
    say(f"starting {', '.join(one.name for one in pipelines)} (Spark {pipelines[0].spark.master})")
    try:
        with ExitStack() as stack:
            running = [stack.enter_context(start(one, once=once)) for one in pipelines]
            interrupted = stack.enter_context(interruptible())
            watch(*running, until=interrupted.is_set)
            with ThreadPoolExecutor(len(running)) as stopping:
                list(stopping.map(Running.stop, running))
            for one in running:
                say(summary(one.progress()))
    finally:
        stop_session()
    if interrupted.is_set():
        raise typer.Exit(130)


def _refuse_namesakes(files: list[Path], pipelines: list[Pipeline]) -> None:
    by_name: dict[str, Path] = {}
    for file, one in zip(files, pipelines, strict=True):
        if (other := by_name.setdefault(one.name, file)) is not file:
            raise ConfigError(
                f"{other} and {file} both define a pipeline {one.name!r}: a name stands for one group "
                "and one place, so give one of them another name"
            )


def on_the_cluster_given(pipeline: Pipeline, cluster: Cluster) -> Pipeline:
    """--connection and --brokers win over what the definition says."""
    if not (cluster.connection or cluster.brokers):
        return pipeline
    return pipeline.model_copy(update={"connection": cluster.find()})


def on_the_spark_given(pipeline: Pipeline, master: str | None, conf: list[str]) -> Pipeline:
    """--master and --conf win over what the definition says."""
    if not (master or conf):
        return pipeline
    settings = dict(map(_setting, conf))
    given = pipeline.spark
    spark = given.model_copy(
        update={"master": master or given.master, "conf": {**given.conf, **settings}}
    )
    return pipeline.model_copy(update={"spark": spark})


def _setting(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise ConfigError(
            f"--conf {given!r} is not a setting; write it as in --conf spark.executor.memory=2g"
        )
    return name, value


@contextmanager
def interruptible() -> Iterator[Event]:
    """The first Ctrl-C or SIGTERM asks for a stop in order; the second one ends at once."""
    asked = Event()

    def ask(_number: int, _frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        say("stopping after the running batch (Ctrl-C again: at once)")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check(file: Definition, as_json: JsonOption = False) -> None:
    """Check a definition: every error with its line, without starting Spark.

    For example: penstock check trades.yaml
    """
    try:
        pipeline = read_pipeline(file)
    except DefinitionError as error:
        if as_json:
            print_json([vars(problem) for problem in error.problems])
            raise typer.Exit(error.exit_code) from None
        raise
    if as_json:
        return print_json([])
    return say(f"{file}: {pipeline.name} is a valid pipeline")


def schema() -> None:
    """Print the JSON schema of definitions, for editors."""
    print_json(Pipeline.model_json_schema())


def setup(
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", help="Which jars; default: all.")
    ] = None,
) -> None:
    """Fetch the jars that pipelines and the embedded broker need, once, into the user's cache."""
    find_java()
    fetch_shown(groups or locked_groups(locked()))
    say("everything is there")
