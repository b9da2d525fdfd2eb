"""`penstock doctor`: problems of this machine, and how to fix them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import typer
from confluent_kafka import libversion

from penstock.cli.options import Cluster, JsonOption, connection_of
from penstock.cli.output import print_json, print_table, say
from penstock.config import Settings
from penstock.config.directories import cache_dir, config_dir, data_dir, log_dir
from penstock.embedded.jars import missing
from penstock.embedded.jars_lock import artifacts_of, groups
from penstock.embedded.java import find_java
from penstock.errors import PenstockError, SetupError
from penstock.kafka import Admin

State = Literal["ok", "note", "problem"]

_PATIENCE = 5.0
_PLACES = {"cache": cache_dir, "data": data_dir, "log": log_dir, "config": config_dir}


@dataclass(frozen=True)
class Finding:
    """The result of one check. A note is something that only some uses need."""

    what: str
    state: State
    detail: str
    fix: str = ""


def doctor(context: typer.Context, as_json: JsonOption = False) -> None:
    """Check versions, Java, jars, directories and the connection; say how to fix problems.

    Exits with code 3 when there is a problem of any kind.
    """
    findings = list(_findings(context))
    if as_json:
        print_json(findings)
    else:
        print_table(("what", "state", "found"), [(f.what, f.state, f.detail) for f in findings])
        for finding in findings:
            if finding.fix:
                say(f"{finding.what}: {finding.fix}")
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(SetupError.exit_code)


def _findings(context: typer.Context) -> Iterator[Finding]:
    yield Finding("penstock", "ok", version("penstock"))
    yield Finding("python", "ok", platform.python_version())
    yield Finding("librdkafka", "ok", libversion()[0])
    yield _spark()
    yield _examined("java", _java)
    yield from (_jars(group) for group in groups())
    for kind, folder in _PLACES.items():
        yield _examined(f"{kind} directory", partial(_writable, folder))
    yield _connection(context)


def _examined(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", look())
    except PenstockError as error:
        return Finding(what, "problem", type(error).__name__, str(error))


def _spark() -> Finding:
    try:
        return Finding("pyspark", "ok", version("pyspark"))
    except PackageNotFoundError:
        return Finding(
            "pyspark", "note", "not installed", "pipelines need it: pip install 'penstock[spark]'"
        )


def _java() -> str:
    java = find_java()
    return f"Java {java.version}, {java.path}"


def _jars(group: str) -> Finding:
    wanted = artifacts_of(group)
    absent = missing(wanted)
    what = f"jars: {group}"
    if not absent:
        return Finding(what, "ok", f"{len(wanted)} in {cache_dir()}")
    return Finding(
        what,
        "note",
        f"{len(absent)} of {len(wanted)} not downloaded yet",
        "they are downloaded when first needed; 'penstock setup' does it now",
    )


def _writable(folder: Callable[[], Path]) -> str:
    path = folder()
    if os.access(path, os.W_OK):
        return str(path)
    raise SetupError(
        f"{path} is not writable: change its owner, or set PENSTOCK_HOME to a directory that is"
    )


def _connection(context: typer.Context) -> Finding:
    cluster: Cluster = context.obj
    finding = _examined("connection", lambda: _cluster(context))
    if finding.state == "ok" or cluster.connection or cluster.brokers or _is_set_up():
        return finding
    # On a new machine there is nothing to check yet.
    return replace(finding, state="note", detail="none is configured yet")


def _is_set_up() -> bool:
    try:
        settings = Settings.read()
    except PenstockError:
        return True  # a file exists, and it is the problem
    return bool(settings.names() or settings.overrides)


def _cluster(context: typer.Context) -> str:
    connection = connection_of(context)
    with Admin(connection, timeout=_PATIENCE) as admin:
        return f"{len(admin.topics())} topics at {connection.brokers}"
