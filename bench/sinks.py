"""Kafka into every kind of table: ours against hand-written Spark, Quix Streams and Kafka Connect.

The records are in the topic before the clock starts. Starting processes does not count for anybody:
Spark's session and Connect's worker are up and warm, Quix's clock starts with its first record. A
slow peer has fewer rows and a deadline; rates are compared. Every table is counted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.harness import Result, Side, race
from bench.peers import connect_sinks
from bench.stage import AT_LEAST, EXACTLY, FEW_TOPIC, TOPIC, Stage
from bench.targets import Database, Delta, Files, Iceberg, Lines, Topic, word

# What is wanted of exactly-once beside at-least-once.
TABLES, KAFKA = 0.90, 0.75
FASTER = 1.0


@dataclass(frozen=True)
class Case:
    """Ours, and the others with the ratio that is wanted against each."""

    title: str
    ours: Side
    others: Sequence[tuple[Side, float | None]]

    def measured(self, rounds: int) -> list[Result]:
        sides = [self.ours, *(side for side, _ in self.others)]
        best = race(self.title, sides, rounds)
        return [
            Result(
                f"{self.title} / {side.name}",
                self.ours.rows,
                best[self.ours.name],
                best[side.name],
                wanted,
                side.rows,
            )
            for side, wanted in self.others
        ]


def run(rows: int, rounds: int, chosen: Sequence[str]) -> list[Result]:
    """Measure the chosen cases, one after the other."""
    with ExitStack() as closing:
        stage = Stage(closing, rows)
        return [result for name in chosen for result in CASES[name](stage).measured(rounds)]


def _files(stage: Stage, title: str, form: str) -> Case:
    target, lines = Files(stage.scratch, form), Lines(stage.scratch)

    file = stage.connect(
        "file sink, rows as lines",
        lines,
        stage.rows,
        lambda name: connect_sinks.row_sink(TOPIC, lines.place(name)),
        lambda name: connect_sinks.lines_in(lines.place(name)),
    )
    return Case(
        title,
        stage.ours(target, EXACTLY),
        [
            (stage.ours(target, AT_LEAST), TABLES),
            (stage.by_hand(target), 0.95),
            (stage.quix("", target, lambda _: {"sink": form}), FASTER),
            (file, FASTER),
        ],
    )


def _lines(stage: Stage) -> Case:
    """Texts that nobody looks into, as lines of a file."""
    target, lines = Files(stage.scratch, "json"), Lines(stage.scratch)
    copied = stage.connect(
        "file sink, lines unread",
        lines,
        stage.rows,
        lambda name: connect_sinks.file_sink(TOPIC, lines.place(name)),
        lambda name: connect_sinks.lines_in(lines.place(name)),
    )
    ours = stage.ours(target, EXACTLY, decode="text")
    return Case("Texts as lines", ours, [(copied, FASTER)])


def _delta(stage: Stage) -> Case:
    target = Delta(stage.scratch, stage.spark)
    others = [(stage.ours(target, AT_LEAST), TABLES), (stage.by_hand(target), 0.95)]
    return Case("Delta", stage.ours(target, EXACTLY), others)


def _iceberg(stage: Stage) -> Case:
    target = Iceberg(stage.scratch, stage.spark)
    sink = stage.connect(
        "Apache Iceberg sink",
        target,
        stage.rows,
        lambda name: connect_sinks.iceberg_sink(TOPIC, target, name, stage.connection),
        lambda name: lambda: target.rows(name),
    )
    return Case(
        "Iceberg",
        stage.ours(target, EXACTLY),
        [
            (stage.ours(target, AT_LEAST), TABLES),
            (stage.by_hand(target), 0.95),
            (sink, FASTER),
        ],
    )


def _postgresql(stage: Stage) -> Case:
    target = Database(stage.scratch, stage.postgres)
    debezium = stage.connect(
        "Debezium JDBC sink",
        target,
        stage.few,
        lambda name: connect_sinks.jdbc_sink(FEW_TOPIC, target.jdbc, target.login, word(name)),
        lambda name: lambda: target.rows(name),
    )
    quix = stage.quix(
        "",
        target,
        lambda name: {"sink": "postgresql", "database": target.libpq(name)},
    )
    return Case(
        "PostgreSQL",
        stage.ours(target, EXACTLY),
        [
            (stage.ours(target, AT_LEAST), TABLES),
            (stage.by_hand(target), 1.2),
            (debezium, FASTER),
            (quix, FASTER),
        ],
    )


def _kafka(stage: Stage) -> Case:
    target = Topic(stage.scratch, stage.spark, stage.connection)

    def quix(guarantee: str) -> Side:
        def task(name: str) -> dict[str, object]:
            return {"sink": "kafka", "target": name, "guarantee": guarantee}

        return stage.quix(f", {guarantee}", target, task)

    return Case(
        "Kafka to Kafka",
        stage.ours(target, EXACTLY),
        [
            (stage.ours(target, AT_LEAST), KAFKA),
            (stage.by_hand(target), None),
            (quix(EXACTLY), FASTER),
            (quix(AT_LEAST), None),
        ],
    )


CASES: dict[str, Callable[[Stage], Case]] = {
    "lines": _lines,
    "parquet": lambda stage: _files(stage, "Parquet", "parquet"),
    "json": lambda stage: _files(stage, "JSON lines", "json"),
    "delta": _delta,
    "iceberg": _iceberg,
    "postgresql": _postgresql,
    "kafka": _kafka,
}
