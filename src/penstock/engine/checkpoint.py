"""What a pipeline remembers between runs: epochs, each with Spark's own checkpoint.

An epoch is one unbroken run of batches. When a user moved the group's offsets while the
pipeline was stopped, a new epoch starts from there, next to the old one. A process that runs the pipeline
under a lease goes on with the epoch under a number of its own: sinks refuse those of earlier processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.pipeline import Offsets
from penstock.pipeline.storage import Folder
from penstock.pipeline.values import offsets_as_json, partitions_of

_SHAPES = "penstock-state.json"
_START = "penstock-start.json"
_DECODE = "penstock-decode.json"
# What Spark writes for a source that has had no record yet.
_NOTHING_READ = "-"
_A_SECOND = 1.0
_CONTINUED = "continued"
# Greater than every second, and smaller than the numbers under a lease.
_LAST_SECOND = 1 << 40


@dataclass(frozen=True)
class Planned:
    """A batch that Spark wrote down before it began: where it ends, and whether it is done."""

    id: int
    end: Offsets
    done: bool


class Epoch:
    """One run of batches from a known start; `earlier` are the numbers that it had before."""

    def __init__(self, folder: Folder, number: int, earlier: frozenset[int] = frozenset()) -> None:
        self.number = number
        self.earlier = earlier
        self._folder = folder
        # The last batch that had partitions which were new, and where they begin.
        self._newest_added: tuple[int, Offsets] | None = None

    @property
    def location(self) -> str:
        """Return the location of Spark's checkpoint."""
        return self._folder.uri

    def continued_as(self, number: int) -> Epoch:
        """Give it another number, before sinks are asked to refuse the earlier ones.

        Each number is a file: none is lost if two processes do this at the same time.
        """
        self._folder.create(f"{_CONTINUED}/{number}", "{}")
        return Epoch(self._folder, number, self.earlier | {self.number})

    def parts(self) -> Folder:
        """Return the folder with the plans of batches that had to be split."""
        return self._folder.below("parts")

    def open(self, start: Offsets, topics: Mapping[str, str]) -> None:
        """Store the start offsets and the topics of the epoch, before its first batch."""
        self.note_topics(topics)
        self._folder.write(_START, offsets_as_json(start))

    def has_begun(self) -> bool:
        """Return whether its start is known, or a batch was planned: old releases stored no start."""
        return self._folder.read(_START) is not None or self.last() is not None

    def outlast_its_second(self) -> None:
        """Wait for the end of the second that the epoch is named after, before its first write.

        A later epoch can then not have the same name, even if this folder is removed. A clock that was
        set back is not waited for. The numbers of a lease belong to no second.
        """
        if self.number < _LAST_SECOND:
            time.sleep(min(_A_SECOND, max(0.0, self.number + 1 - time.time())))

    def start(self) -> Offsets:
        """Return where the epoch starts."""
        return partitions_of(json.loads(self._folder.read(_START) or "{}"))

    def topics(self) -> dict[str, str]:
        """Return the ids of the topics that the epoch reads: a recreated topic has another."""
        known: dict[str, str] = json.loads(self._folder.read("penstock-topics.json") or "{}")
        return known

    def note_topics(self, ids: Mapping[str, str]) -> None:
        """Write down the ids of the topics."""
        self._folder.write("penstock-topics.json", json.dumps(dict(ids)))

    def decode(self) -> str | None:
        """Return the identity of the decode that wrote last; None before the first write."""
        text = self._folder.read(_DECODE)
        return None if text is None else str(json.loads(text))

    def note_decode(self, identity: str) -> None:
        """Write down the identity of the decode."""
        self._folder.write(_DECODE, json.dumps(identity))

    def last(self) -> Planned | None:
        """Return the newest batch that was planned, or None before the first."""
        ids = _numbers(self._folder.names("offsets"))
        if not ids:
            return None
        newest = ids[-1]
        done = newest in _numbers(self._folder.names("commits"))
        return Planned(newest, self.end_of(newest), done)

    def last_done(self) -> int:
        """Return the number of the newest batch that is done; -1 where none is."""
        return max(_numbers(self._folder.names("commits")), default=-1)

    def end_of(self, batch: int) -> Offsets:
        """Return the offsets at which a batch ends: the next record of each partition.

        Spark's offset log has one header line, one of settings, then one per source.
        """
        if batch < 0:
            return self.start()
        end: Offsets = {}
        for line in self._planned(batch)[2:]:
            if line != _NOTHING_READ:
                end |= partitions_of(json.loads(line))
        return end

    def watermark(self, batch: int) -> int:
        """Return up to which time rows were done with when a batch began, in microseconds since 1970.

        A row is late by the watermark of the batch before.
        """
        if batch < 1:
            return 0
        settings = json.loads(self._planned(batch - 1)[1])
        return int(settings["batchWatermarkMs"]) * 1000

    def shapes(self) -> list[dict[str, str]]:
        """Return what the steps that keep state keep in this epoch."""
        return json.loads(self._folder.read(_SHAPES) or "[]")  # type: ignore[no-any-return]

    def keep_shapes(self, shapes: list[dict[str, str]]) -> None:
        """Write down what they keep."""
        self._folder.write(_SHAPES, json.dumps(shapes))

    def _planned(self, batch: int) -> list[str]:
        text = self._folder.read(f"offsets/{batch}")
        if text is None:
            raise LookupError(f"batch {batch} is not in the offset log under {self.location}")
        return text.splitlines()

    def begin_of(self, batch: int) -> Offsets:
        """Return the offsets at which a batch begins, those of partitions that are new in it included."""
        return self.end_of(batch - 1) | self._added(batch)

    def note_added(self, batch: int, starts: Offsets) -> None:
        """Write down where the partitions that are new in a batch begin: it may be run again."""
        added = self._added(batch) | starts
        text = json.dumps({"batch": batch, "starts": json.loads(offsets_as_json(added))})
        self._folder.write("penstock-added.json", text)
        self._newest_added = batch, added

    def _added(self, batch: int) -> Offsets:
        if self._newest_added is None:
            noted = json.loads(self._folder.read("penstock-added.json") or "{}")
            self._newest_added = noted.get("batch", -1), partitions_of(noted.get("starts", {}))
        of, starts = self._newest_added
        return starts if of == batch else {}


class Checkpoint:
    """The epochs of one pipeline."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def newest(self) -> Epoch | None:
        """Return the epoch that began last, or None before the first start.

        A process that is killed while it begins one leaves a folder that says nothing.
        """
        epochs = map(self._epoch, reversed(_numbers(self._folder.names())))
        return next((epoch for epoch in epochs if epoch.has_begun()), None)

    def new(self, number: int, start: Offsets, topics: Mapping[str, str]) -> Epoch:
        """Begin an epoch at these offsets of the topics with these ids."""
        epoch = self._epoch(number)
        epoch.open(start, topics)
        return epoch

    def _epoch(self, number: int) -> Epoch:
        folder = self._folder.below(str(number))
        *earlier, newest = sorted({number, *_numbers(folder.names(_CONTINUED))})
        return Epoch(folder, newest, frozenset(earlier))


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isdigit())
