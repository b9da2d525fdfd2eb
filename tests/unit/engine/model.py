"""A small world for the engine's own code: a log, a group, sinks and processes that can die any time.

What decides about records is the real code: `Resuming`, `Witnesses`, `Claims`, `BatchLoop`, `Writing`,
`Splitting`, `TopicWatcher` and the checkpoint on disk. Kafka, Spark and the sink's target are simulated.
Every change that outlives a process is an *effect*, before and after which it can be killed or suspended.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from tests.unit.engine.memory_log import MemoryLog

from penstock.engine import resuming
from penstock.engine.batch_writing import DecodeNote, Writing
from penstock.engine.batches import BatchLoop
from penstock.engine.checkpoint import Checkpoint
from penstock.engine.claims import Claims, Writers, keeps_marks
from penstock.engine.counting import Failures, Written
from penstock.engine.dead_letter_batch import unfinished_batch
from penstock.engine.loop import Hooks
from penstock.engine.progress import Progress
from penstock.engine.resuming import Resuming
from penstock.engine.resumption import Stamp
from penstock.engine.stateful.plan import plan_of
from penstock.engine.topic_watcher import TopicWatcher
from penstock.errors import FencedError, PenstockError, RefusedError
from penstock.pipeline import (
    EVERY_DELIVERY,
    Batch,
    LastWrite,
    Offsets,
    Opening,
    Partition,
    Pipeline,
    Ranges,
    Sink,
    Writer,
    is_repetition,
)
from penstock.pipeline.disk import Disk
from penstock.pipeline.source_log import CommittedOffset
from penstock.pipeline.storage import Folder
from penstock.sinks.fencing import claimed

TOPIC, PARTITIONS = "t", 2
SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
Place = tuple[str, int]
Record = tuple[int, int]
"""Partition and offset."""


class Killed(BaseException):
    """Ends a process at once: no handler of the engine sees it."""


class Process:
    """One process with the pipeline; it runs in a thread, of which only one moves at a time."""

    def __init__(self, world: World, state: str, token: int | None = None) -> None:
        self.world = world
        self.state = state
        self.token = token
        self.fate = ""
        self.left = 0
        self.is_dead = self.is_stopped = False
        self.error: PenstockError | None = None
        self.held = -1
        self.loop: Loop | None = None
        self._turn, self._yielded = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.is_suspended = False

    # -- from the outside

    def do(self, work: Callable[[], None], fate: str = "", after: int = 0) -> None:
        """Run an action to its end, or until it is killed or suspended after that many effects."""
        self.fate, self.left = fate, after
        self._yielded.clear()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._yielded.wait()

    def wake(self, fate: str = "", after: int = 0) -> None:
        """Let a suspended process go on."""
        self.fate, self.left = fate, after
        self.is_suspended = False
        self._yielded.clear()
        self._turn.set()
        self._yielded.wait()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Killed:
            self.is_dead = True
        except PenstockError as error:
            self.error = error
            self.is_dead = True  # the supervisor's restarts are starts of their own here
        finally:
            self._yielded.set()

    # -- from the inside

    def effect(self, act: Callable[[], Any]) -> Any:
        """Change something that outlives the process.

        A thread that an earlier test left can be here as well: it counts as no moment of this process.
        """
        if threading.current_thread() is not self._thread:
            return act()
        self._moment()
        result = act()
        self._moment()
        return result

    def _moment(self) -> None:
        if not self.fate:
            return
        if self.left:
            self.left -= 1
            return
        fate, self.fate = self.fate, ""
        if fate == "kill":
            raise Killed
        self.is_suspended = True
        self._turn.clear()
        self._yielded.set()
        self._turn.wait()
        self._moment()


class Log(MemoryLog):
    """The topic and the group as one process sees them: a commit is an effect."""

    def __init__(self, process: Process) -> None:
        super().__init__({(TOPIC, p): end for p, end in enumerate(process.world.ends)})
        self._process = process
        self.offsets = process.world.committed

    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        return {place: self._process.world.ends[place[1]] for place in partitions}

    def commit(self, offsets: Mapping[Partition, int], metadata: str) -> None:
        new = {place: CommittedOffset(offset, metadata) for place, offset in offsets.items()}
        self._process.effect(lambda: self._process.world.committed.update(new))


class ModelSink(Sink):
    """A target with one atomic act for rows and mark, or one for each source partition."""

    name = "model"
    delivers = EVERY_DELIVERY
    table: str
    by_partition: bool = False
    worlds: ClassVar[dict[str, World]] = {}

    def open(self, opening: Opening) -> Writer:
        return ModelWriter(self, opening)


class ModelWriter(Writer[ModelSink]):
    """Writes to the world's tables."""

    @property
    def world(self) -> World:
        return self.sink.worlds["now"]

    @property
    def key(self) -> tuple[str, str]:
        return self.sink.table, self.opening.pipeline

    def last_write(self) -> LastWrite | None:
        return self.world.writes.get(self.key)

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        def act() -> LastWrite | None:
            known = self.world.writes.get(self.key)
            self.world.writes[self.key] = claimed(known, epoch, self.opening.pipeline, continues)
            return known

        found: LastWrite | None = self.world.process.effect(act)
        return found

    def write(self, batch: Batch) -> None:
        rows: list[Record] = batch.rows  # type: ignore[assignment]
        if not self.sink.by_partition:
            self.world.process.effect(lambda: self._write(batch, rows))
            return
        for place, span in batch.ranges.items():
            own = replace(batch, ranges={place: span})
            these = [row for row in rows if row[0] == place[1]]
            self.world.process.effect(lambda own=own, these=these: self._write(own, these))

    def _write(self, batch: Batch, rows: list[Record]) -> None:
        if batch.delivery.value != "at-least-once" and self.has(batch):
            return
        self.world.tables[self.sink.table] += rows
        known = self.world.writes.get(self.key)
        ranges, marks = batch.ranges, dict.fromkeys(batch.ranges, batch.mark)
        if self.sink.by_partition and known:
            ranges, marks = known.ranges | ranges, known.marks | marks
        self.world.writes[self.key] = LastWrite(batch.mark, ranges, marks=marks)

    def has(self, batch: Batch) -> bool:
        known = self.world.writes.get(self.key)
        has = is_repetition(known.mark if known else None, batch.mark, batch.pipeline)
        if known is None or not self.sink.by_partition:
            return has
        read = {place: span for place, span in batch.ranges.items() if span[1] > span[0]}
        return bool(read) and all(self._covers(known, batch, *each) for each in read.items())

    def _covers(self, known: LastWrite, batch: Batch, place: Place, span: tuple[int, int]) -> bool:
        """Whether this partition has its own mark, or one of the whole batch, of which this is a part."""
        mark, (_, end) = known.marks.get(place), known.ranges.get(place, (0, 0))
        if mark is None or mark >= batch.mark:
            return mark is not None
        return not batch.again and mark[:2] == batch.mark[:2] and end >= span[1]


class ModelWriting(Writing):
    """Decoding and steps without Spark: what is bad and what a definition refuses is up to the number."""

    def __init__(self, world: World, process: Process, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._world = world
        self._refuses = world.refuses(process.version)

    def _write(self, batch: Batch, write: Callable[[Batch], None]) -> Written:
        rows = self._world.read(batch.ranges)
        good = [row for row in rows if not self._world.is_bad(row)]
        if write == self._claims.writers.rows.write:
            if any(self._refuses(row) for row in good):
                raise RefusedError("a step refuses a row")
            write(replace(batch, rows=good))
        return Written(len(good), Failures(len(rows) - len(good), len(rows) - len(good)))

    def _write_part(self, part: Batch) -> Written:
        return replace(self._write_once(part), lost=())

    def _write_dead_letters(self, batch: Batch, written: Written) -> str:
        bad = [row for row in self._world.read(batch.ranges) if self._world.is_bad(row)]
        refused = [(each.partition, each.offset) for each in written.refused]
        letters = replace(batch, rows=bad + refused, pipeline=f"{batch.pipeline}.dead-letters")
        self._claims.writers.dead_letters.write(letters)
        return "bad"


class Loop(BatchLoop):
    """The batch loop over lists."""

    process: Process

    def _plain_writing(self, only: Any) -> Writing:
        world = ModelSink.worlds["now"]
        given: Any = {"parts": self._epoch.parts(), "records": None, "part": None}
        given["decode_note"] = DecodeNote(self._epoch, self.pipeline.decode)
        return ModelWriting(world, world.process, self.pipeline, self._plan, self._claims, **given)

    def _read(self, branch: Any, batch: Batch, ranges: Any) -> Any:
        return ModelSink.worlds["now"].read(ranges)


class World:
    """All that outlives processes, and the processes."""

    def __init__(self, folder: Path, delivery: str, *, commit: bool, by_partition: bool) -> None:
        self.folder = folder
        self.now = 1_700_000_000.0
        self.ends = [0] * PARTITIONS
        self.committed: dict[Place, CommittedOffset] = {}
        self.tables: dict[str, list[Record]] = {"rows": [], "dead": []}
        self.writes: dict[tuple[str, str], LastWrite] = {}
        self.skipped: set[Record] = set()
        self.version = 0
        self.processes: list[Process] = []
        self.process: Process = None  # type: ignore[assignment]
        ModelSink.worlds["now"] = self
        self.pipeline = Pipeline(
            name="model",
            connection={"bootstrap.servers": "localhost:1"},
            source={"kafka": TOPIC},
            decode={"json": {"schema": "n int"}},
            sink=ModelSink(table="rows", by_partition=by_partition),
            dead_letters=ModelSink(table="dead", by_partition=by_partition),
            delivery=delivery,
            commit=commit,
            max_refused=2,
            state=str(folder),
        )

    def patch(self, monkeypatch: Any) -> None:
        """Put the simulation in the place of Spark, of the clock and of the disk's writes."""
        monkeypatch.setattr(resuming, "now", lambda: self.now)
        for name in ("write", "create"):
            change = getattr(Disk, name)

            def effect(disk: Any, place: str, text: str, change: Any = change) -> Any:
                return self.process.effect(lambda: change(disk, place, text))

            monkeypatch.setattr(Disk, name, effect)

    # -- records

    def read(self, ranges: Mapping[Place, tuple[int, int]]) -> list[Record]:
        return [
            (p, n) for (_, p), (start, end) in sorted(ranges.items()) for n in range(start, end)
        ]

    def is_bad(self, row: Record) -> bool:
        return (row[0] + 3 * row[1]) % 7 == 3

    def refuses(self, version: int) -> Callable[[Record], bool]:
        """Each version of the definition refuses other rows; every third one none."""
        return lambda row: bool(version % 3) and (row[1] + version) % 5 == 0

    def _finish(self, writers: Writers, epoch: int, ranges: Ranges) -> None:
        if bad := [row for row in self.read(ranges) if self.is_bad(row)]:
            batch = unfinished_batch(self.pipeline, epoch, ranges, None, self.pipeline.connection)  # type: ignore[arg-type]
            letters = replace(batch, rows=bad, pipeline="model.dead-letters")
            writers.dead_letters.write(letters)

    def remove_from(self, offsets: list[int]) -> None:
        """Remove what was written of each partition from an offset on; what was not read is skipped."""
        known = {*self.tables["rows"], *self.tables["dead"]}
        for p, to in enumerate(offsets):
            self.skipped |= {(p, n) for n in range(to) if (p, n) not in known}
            self.skipped -= {(p, n) for n in range(to, self.ends[p])}
        for name, rows in self.tables.items():
            self.tables[name] = [row for row in rows if row[1] < offsets[row[0]]]

    # -- what processes do

    def act(
        self, process: Process, work: Callable[[], None], fate: str = "", after: int = 0
    ) -> None:
        self.process = process
        process.do(work, fate, after)

    def start(self, process: Process) -> None:
        """Find the epoch, as an attempt does."""
        process.version = self.version
        opening = Opening(SPARK, "model", self.pipeline.connection, self.pipeline.delivery)  # type: ignore[arg-type]
        writers = Writers.open(self.pipeline, opening)
        claims = Claims(self.pipeline, writers)
        checkpoint = Checkpoint(Folder(SPARK, str(self.folder / process.state)))
        plan, source_log = plan_of(self.pipeline), Log(process)
        asked: Any = (checkpoint, self.pipeline, plan.sources, source_log, lambda _: claims)
        finish = partial(self._finish, writers)
        found = Resuming(*asked, held=process.held, token=process.token, finish=finish).find()
        process.held = found.epoch.number
        process.epoch = found.epoch
        seen: Any = dict
        following = TopicWatcher(
            self.pipeline, plan.sources, found.epoch, source_log, seen,  # type: ignore[arg-type]
            committed=found.committed, seen_ends=dict,
        )  # fmt: skip
        process.loop = Loop(
            self.pipeline, plan, self.pipeline.connection, found.epoch,  # type: ignore[arg-type]
            watcher=following, progress=Progress("model"), query=seen,
            claims=claims, hooks=Hooks(),
        )  # fmt: skip

    def batch(self, process: Process, most: int) -> None:
        """Plan a batch as Spark does, or take the one that was under way, and run it."""
        epoch, loop = process.epoch, process.loop
        last = epoch.last()
        number = last.id if last and not last.done else (last.id + 1 if last else 0)
        if last is None or last.done:
            begin = epoch.end_of(number - 1)
            end = {p: min(self.ends[p[1]], at + most) for p, at in begin.items()}
            if end == begin:
                return
            offsets = json.dumps({TOPIC: {str(p): at for (_, p), at in end.items()}})
            self._note(epoch, f"offsets/{number}", f"v1\n{{}}\n{offsets}")
        rows: Any = SimpleNamespace(sparkSession=None)
        loop.run(rows, number)
        self._note(epoch, f"commits/{number}", "v1\n{}")

    def _note(self, epoch: Any, name: str, text: str) -> None:
        """Write a file of Spark's log: a query ends where another one has written it."""
        if not epoch._folder.create(name, text):
            raise FencedError(f"another query uses the checkpoint: {name}")

    @property
    def live(self) -> list[Process]:
        return [each for each in self.processes if not each.is_dead]

    # -- the promise

    def duplicates(self) -> Counter[Record]:
        every = Counter(self.tables["rows"]) + Counter(self.tables["dead"])
        return Counter({row: times for row, times in every.items() if times > 1})

    def missing(self) -> set[Record]:
        every = {(p, n) for p in range(PARTITIONS) for n in range(self.ends[p])}
        return every - set(self.tables["rows"]) - set(self.tables["dead"]) - self.skipped

    def is_known_without_group(self) -> bool:
        """Whether the sink has all that the group says is done, and nothing that is to be written again.

        It does not know of a batch of which every record was refused, nor of a person who moved the
        group until the next batch.
        """
        write = self.writes.get(("rows", "model"))
        if not keeps_marks(self.pipeline) or write is None:
            return False
        return all(
            write.ranges.get(place, (0, 0))[1] == each.offset and Stamp.read(each.metadata)
            for place, each in self.committed.items()
        )
