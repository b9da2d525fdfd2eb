"""The archive of Java classes with which Spark starts in half the time; a small pipeline makes it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.cli.output import say
from penstock.config import Connection
from penstock.embedded import Broker
from penstock.engine import start, stop_session
from penstock.engine.spark_jvm import archive_path
from penstock.kafka import Producer
from penstock.pipeline import Pipeline

_TOPIC = "records"
_SQL = "SELECT word, count(*) OVER (PARTITION BY word) AS total FROM rows"


def make_class_archive() -> None:
    """Run a pipeline for a moment and keep the classes that it loads, unless they are kept already.

    Without this the first process that ends in order does it, which takes it half a minute longer.
    """
    if find_spec("pyspark") is None or archive_path().exists():
        return
    say(
        "making an archive of Java's classes, so that Spark starts in half the time (half a minute, once)"
    )
    with TemporaryDirectory(prefix="penstock-") as folder, Broker() as broker:
        with Producer(broker.connection) as producer:
            for number in range(100):
                producer.produce(_TOPIC, value=b'{"word": "%d"}' % (number % 10))
        try:
            with start(_pipeline(broker.connection, Path(folder)), once=True) as running:
                running.wait()
        finally:
            stop_session()


def _pipeline(connection: Connection, folder: Path) -> Pipeline:
    return Pipeline(
        name="classes",
        connection=connection,
        source={"kafka": {"topics": _TOPIC}},
        decode={"json": {"schema": "word string"}},
        steps=[{"sql": _SQL}],
        sink={"files": {"path": str(folder / "table")}},
        state=str(folder / "state"),
    )
