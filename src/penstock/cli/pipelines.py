"""`penstock run`, `check`, `schema` and `setup`: pipelines on the command line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.interrupts import interruptible
from penstock.cli.jar_progress import fetch_shown
from penstock.cli.options import Cluster, JsonOption
from penstock.cli.output import print_json, say
from penstock.embedded import jars
from penstock.embedded.jars_lock import groups as locked_groups
from penstock.embedded.java import find_java
from penstock.errors import ConfigError, DefinitionError
from penstock.pipeline import Pipeline, SparkOptions, read_pipeline

Definition = Annotated[Path, typer.Argument(metavar="FILE", help="A pipeline definition (YAML).")]


def run(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Pipeline definitions (YAML).")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Process the current backlog, then exit.")
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
        typer.Option(metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
    ] = None,
) -> None:
    """Run pipelines until Ctrl-C, or, with --once, until the current backlog is processed.

    For example: penstock run trades.yaml --once

    Several share one engine, fairly, and a failure does not affect the others: penstock run *.yaml

    On a cluster: penstock run trades.yaml --master spark://spark:7077

    Ctrl-C lets the current batch finish, commits it and stops; the next run resumes from there. A second
    Ctrl-C exits immediately: the next run repeats the batch.
    """
    pipelines = [with_cluster(read_pipeline(file), context.obj) for file in files]
    pipelines = [with_spark(one, master, conf or []) for one in pipelines]
    _refuse_duplicate_names(files, pipelines)
    run_pipelines(pipelines, once=once)


def run_pipelines(pipelines: list[Pipeline], *, once: bool) -> None:
    """Run pipelines, show their progress, and stop them at Ctrl-C."""
    # Spark is imported only when the definition is valid, so mistakes are reported immediately.
    from penstock.cli.live_progress import summary, watch  # noqa: PLC0415
    from penstock.engine import Running, stop_session  # noqa: PLC0415
    from penstock.imports import ImportRunning, start  # noqa: PLC0415

    fetch_shown(jars.SPARK_GROUPS)
    say(f"starting {', '.join(one.name for one in pipelines)} (Spark {pipelines[0].spark.master})")
    with interruptible() as interrupted, ExitStack() as stack:
        stack.callback(stop_session)
        running: list[Running | ImportRunning] = []
        for one in pipelines:
            if not interrupted.is_set():
                started: Running | ImportRunning = start(one, once=once)
                running.append(started)
                stack.callback(started.stop)
        watch(*running, until=interrupted.is_set)
        with ThreadPoolExecutor(len(pipelines)) as stopping:
            list(stopping.map(lambda one: one.stop(), running))
        for ended in running:
            say(summary(ended.progress()))
    if interrupted.is_set():
        raise typer.Exit(130)


def _refuse_duplicate_names(files: list[Path], pipelines: list[Pipeline]) -> None:
    by_name: dict[str, Path] = {}
    for file, one in zip(files, pipelines, strict=True):
        if (other := by_name.setdefault(one.name, file)) is not file:
            raise ConfigError(
                f"{other} and {file} both define a pipeline {one.name!r}: a name identifies one group "
                "and one state folder, so rename one of them"
            )


def with_cluster(pipeline: Pipeline, cluster: Cluster) -> Pipeline:
    """Return the pipeline with the cluster of --connection or --brokers, if one is given."""
    if not (cluster.connection or cluster.brokers):
        return pipeline
    return pipeline.model_copy(update={"connection": cluster.find()})


def with_spark(pipeline: Pipeline, master: str | None, conf: list[str]) -> Pipeline:
    """Return the pipeline with --master and --conf, if they are given."""
    if not (master or conf):
        return pipeline
    return pipeline.model_copy(update={"spark": spark_options(master, None, conf, pipeline.spark)})


def spark_options(
    master: str | None, memory: str | None, conf: list[str], given: SparkOptions | None = None
) -> SparkOptions:
    """Return Spark's options with --master, --memory and --conf, where they are given."""
    before = given or SparkOptions()
    return SparkOptions(
        master=master or before.master,
        memory=memory or before.memory,
        conf={**before.conf, **dict(map(_setting, conf))},
    )


def _setting(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise ConfigError(
            f"--conf {given!r} is not a setting; write it as in --conf spark.executor.memory=2g"
        )
    return name, value


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
    """Download the jars that pipelines and the embedded broker need, once, into the user's cache.

    Without groups it also makes the archive of classes that lets Spark start in half the time.
    """
    find_java()
    fetch_shown(groups or locked_groups())
    say("all jars are cached")
    if not groups:
        from penstock.cli.class_archive import make_class_archive  # noqa: PLC0415

        make_class_archive()
