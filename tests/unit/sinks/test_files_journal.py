"""The journal of a table of files: several processes, zombies and kills at any moment, on real files."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from penstock.config import Connection
from penstock.errors import FencedError, TerminalError, TransientError
from penstock.pipeline import CLAIMED, Batch, Delivery, LastWrite, Mark
from penstock.pipeline.storage import Folder
from penstock.sinks.files.journal import Act, Journal
from penstock.sinks.files.staging import new_staging, remove_staging

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
CONNECTION = Connection(brokers="nowhere:1")
EXACT, LOOSE = Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE
RANGES = {("t", 0): (10, 20), ("t", 1): (0, 3)}
FORKED = multiprocessing.get_context("fork")


def folder_at(place: Path) -> Folder:
    return Folder(SPARK, str(place))


def journal_at(place: Path) -> Journal:
    """A journal as another process has it: it shares nothing but the folder."""
    return Journal(folder_at(place), "p")


def batch_of(epoch: int, number: int, delivery: Delivery = EXACT, part: int = 0) -> Batch:
    rows: Any = None
    return Batch(rows, "p", epoch, number, CONNECTION, RANGES, part=part, delivery=delivery)


def staged(folder: Folder, batch: Batch, count: int = 3) -> dict[str, str]:
    """Write files aside, as Spark does for a batch; return what is to be brought in."""
    aside = new_staging(batch.label)
    names = [f"day={number}/part-{number}-{uuid4()}" for number in range(count)]
    for name in names:
        folder.write(f"{aside}/{name}", "1")
    return {f"{aside}/{n}": f"{n.partition('/')[0]}/{batch.label}~{n[6:]}" for n in names}


def written(place: Path) -> list[str]:
    """The labels of the files in the table, one for each file."""
    return sorted(file.name.rpartition("~")[0] for file in place.glob("day=*/*"))


def no_mark() -> None:
    return None


def write(place: Path, batch: Batch) -> None:
    journal = journal_at(place)
    if not journal.has(batch, journal.settled().act):
        journal.write(batch, staged(journal.folder, batch), [])


def test_a_write_is_known_with_its_mark_and_its_ranges_and_a_claim_keeps_the_ranges(
    tmp_path: Path,
) -> None:
    assert journal_at(tmp_path).claim(5, no_mark) is None
    write(tmp_path, batch_of(5, 7))

    last = LastWrite(Mark(5, 7, 0), RANGES)
    assert journal_at(tmp_path).claim(6, no_mark) == last
    assert journal_at(tmp_path).state().act == Act(LastWrite(Mark(6, CLAIMED, 0), RANGES))
    assert journal_at(tmp_path).claim(7, no_mark) == LastWrite(Mark(6, CLAIMED, 0), RANGES)


@pytest.mark.parametrize("asked", [4, 6])
def test_an_epoch_that_the_table_knows_or_an_older_one_cannot_be_claimed(
    tmp_path: Path, asked: int
) -> None:
    journal_at(tmp_path).claim(6, no_mark)
    with pytest.raises(FencedError, match=f"has epoch 6, this process has {asked}"):
        journal_at(tmp_path).claim(asked, no_mark)


@pytest.mark.parametrize("delivery", [EXACT, Delivery.AT_MOST_ONCE])
def test_a_process_with_an_older_epoch_is_fenced_and_brings_nothing_in(
    tmp_path: Path, delivery: Delivery
) -> None:
    write(tmp_path, batch_of(5, 0, delivery))
    journal_at(tmp_path).claim(6, no_mark)
    with pytest.raises(FencedError, match="the sink has epoch 6, this process has 5"):
        write(tmp_path, batch_of(5, 1, delivery))
    write(tmp_path, batch_of(6, 0, delivery))

    assert written(tmp_path) == ["p~5~0~0"] * 3 + ["p~6~0~0"] * 3


@pytest.mark.parametrize("delivery", [Delivery.AT_MOST_ONCE, Delivery.EXACTLY_ONCE])
def test_a_batch_that_comes_again_is_brought_in_once(tmp_path: Path, delivery: Delivery) -> None:
    for _ in range(3):
        write(tmp_path, batch_of(5, 1, delivery))

    assert written(tmp_path) == ["p~5~1~0"] * 3


def test_two_processes_that_deliver_at_least_once_under_one_name_lose_nothing(
    tmp_path: Path,
) -> None:
    """Without a claim, in the same second: they have the same epoch and the same numbers of batches."""
    other = Batch(**(vars(batch_of(5, 0, LOOSE)) | {"ranges": {("t", 0): (20, 30)}}))
    write(tmp_path, batch_of(5, 0, LOOSE))
    write(tmp_path, batch_of(5, 1, LOOSE))
    journal = journal_at(tmp_path)
    journal.write(other, {**staged(journal.folder, other, 1)}, [])

    assert written(tmp_path) == ["p~5~0~0"] * 4 + ["p~5~1~0"] * 3


class KilledError(BaseException):
    """As if the process had been killed here."""


def kill_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Let the given one of all changes to the folder not happen, nor any after it."""
    left = iter(range(moment))

    def until(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any) -> Any:
            if next(left, None) is None:
                raise KilledError
            return change(*given)

        return changed

    for name in ("move", "remove", "create"):
        monkeypatch.setattr(Folder, name, until(getattr(Folder, name)))


@pytest.mark.parametrize("moment", range(12))
def test_after_a_kill_at_any_moment_a_process_without_the_state_sees_the_batch_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    write(tmp_path, batch_of(5, 0))
    journal, batch = journal_at(tmp_path), batch_of(5, 1)
    with monkeypatch.context() as killing, pytest.raises(KilledError):
        added = staged(journal.folder, batch)
        kill_at(killing, moment)
        journal.write(batch, added, [])
        raise KilledError

    last = journal_at(tmp_path).claim(6, no_mark)

    assert last is not None
    files = {Mark(5, 0, 0): ["p~5~0~0"] * 3, Mark(5, 1, 0): ["p~5~0~0"] * 3 + ["p~5~1~0"] * 3}
    assert written(tmp_path) == files[last.mark]
    # The same process, with its state: it runs the batch again where it was not claimed by another.
    with pytest.raises(FencedError):
        write(tmp_path, batch_of(5, 1))


def test_a_zombie_that_wakes_up_before_its_act_brings_nothing_in(tmp_path: Path) -> None:
    write(tmp_path, batch_of(5, 0))
    zombie, batch = journal_at(tmp_path), batch_of(5, 1)
    state = zombie.settled()
    added = staged(zombie.folder, batch)
    for epoch in range(6, 40):  # what it knew of is long removed from the journal
        journal_at(tmp_path).claim(epoch, no_mark)

    assert not zombie.add(state.next, Act(batch.as_write, added))
    with pytest.raises(FencedError):
        zombie.write(batch, added, [])
    assert journal_at(tmp_path).claim(40, no_mark) == LastWrite(Mark(39, CLAIMED, 0), RANGES)
    assert written(tmp_path) == ["p~5~0~0"] * 3


def suspended(place: Path, at: str) -> None:
    """Write a batch and stop before a change to the folder, as SIGSTOP from outside would."""
    change = getattr(Folder, at)

    def stopping(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSTOP)
        return change(*given)

    setattr(Folder, at, stopping)
    try:
        journal, batch = journal_at(place), batch_of(5, 1)
        journal.write(batch, staged(journal.folder, batch), [])
    except FencedError:
        os._exit(42)
    os._exit(0)


def resumed_until_it_ends(process: Any) -> int:
    """Let a process go on each time it stops itself; return its exit code."""
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.kill(process.pid, signal.SIGCONT)


@pytest.mark.parametrize(("at", "ends", "mark"), [("create", 42, (5, 0)), ("move", 0, (5, 1))])
def test_a_process_that_was_stopped_while_another_took_over_loses_and_doubles_nothing(
    tmp_path: Path, at: str, ends: int, mark: tuple[int, int]
) -> None:
    write(tmp_path, batch_of(5, 0))
    process = FORKED.Process(target=suspended, args=(tmp_path, at))
    process.start()
    _, status = os.waitpid(process.pid or 0, os.WUNTRACED)
    assert os.WIFSTOPPED(status)

    last = journal_at(tmp_path).claim(6, no_mark)
    assert last is not None
    assert last.mark[:2] == mark
    remove_staging(folder_at(tmp_path), "p", Mark(6, 0, 0), older_epochs=True)
    write(tmp_path, batch_of(6, 0))
    os.kill(process.pid or 0, signal.SIGCONT)

    assert resumed_until_it_ends(process) == ends
    of_the_zombie = ["p~5~1~0"] * 3 if mark == (5, 1) else []
    assert written(tmp_path) == ["p~5~0~0"] * 3 + of_the_zombie + ["p~6~0~0"] * 3


def many_batches(place: Path, epoch: int) -> None:
    for number in range(20):
        write(place, batch_of(epoch, number, LOOSE))


def test_processes_that_write_at_the_same_time_lose_and_double_nothing(tmp_path: Path) -> None:
    processes = [FORKED.Process(target=many_batches, args=(tmp_path, e)) for e in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * 4
    wanted = [f"p~{e}~{n}~0" for e in range(4) for n in range(20) for _ in range(3)]
    assert written(tmp_path) == sorted(wanted)


def test_files_that_vanish_before_they_are_renamed_undo_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, batch_of(5, 0))
    journal, batch = journal_at(tmp_path), batch_of(5, 1)
    added = staged(journal.folder, batch)
    create = Folder.create

    def vanishing(folder: Folder, name: str, text: str) -> bool:
        made = create(folder, name, text)
        folder.remove([*added][1])
        return made

    with monkeypatch.context() as broken:
        broken.setattr(Folder, "create", vanishing)
        with pytest.raises(TransientError, match="1 files of a batch of 'p' vanished"):
            journal.write(batch, added, [])

    assert written(tmp_path) == ["p~5~0~0"] * 3
    assert journal_at(tmp_path).state().act == Act(
        LastWrite(Mark(5, 0, 0), RANGES), removed=[*added.values()][::2]
    )
    write(tmp_path, batch)
    assert written(tmp_path) == ["p~5~0~0"] * 3 + ["p~5~1~0"] * 3


def test_a_write_that_replaces_files_removes_none_while_its_own_are_missing(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    folder.write("day=1/old", "1")
    act = Act(LastWrite(Mark(5, 0, 0)), {"_penstock/p~5~0~0.a/x": "day=1/new"}, ["day=1/old"])
    journal_at(tmp_path).add(1, act)
    with pytest.raises(TerminalError, match="day=1/new takes the place of 1 files"):
        journal_at(tmp_path).settled()
    assert folder.exists("day=1/old")


def test_rows_that_people_removed_from_the_table_stay_removed(tmp_path: Path) -> None:
    write(tmp_path, batch_of(5, 0))
    for file in tmp_path.glob("day=*/*"):
        file.unlink()

    assert journal_at(tmp_path).claim(6, no_mark) == LastWrite(Mark(5, 0, 0), RANGES)
    assert written(tmp_path) == []


def test_an_act_that_was_cut_off_does_not_count_and_the_next_one_goes_after_it(
    tmp_path: Path,
) -> None:
    """On stores that show a file before it is whole."""
    write(tmp_path, batch_of(5, 0))
    folder_at(tmp_path).write("_penstock/log/p/00000000000000000002.json", '{"mark": [5, 1')

    assert journal_at(tmp_path).claim(6, no_mark) == LastWrite(Mark(5, 0, 0), RANGES)
    assert journal_at(tmp_path).state().number == 3


def test_only_what_a_pipeline_itself_left_aside_is_removed(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    others = [
        "p~replay~0~3~0.a1", "p.dead-letters~5~1~0.a1", "p.dead-letters~notes~0~9~0.a1", "pp~5~1~0.a1",
        "p~6~0~0.a1", "p~5~2~0.a1", "log", "table-1.json",
    ]  # fmt: skip
    own = ["p~5~1~0.a1", "p~5~1~2.b2", "p~5~0~0", "p~joined~5~1~0.c3"]
    older = ["p~4~7~0.a1"]
    for name in [*others, *own, *older]:
        folder.write(f"_penstock/{name}/part-0", "1")

    remove_staging(folder, "p", Mark(5, 1, 0), older_epochs=False)
    assert sorted(folder.names("_penstock")) == sorted([*others, *older])
    remove_staging(folder, "p", Mark(5, 1, 0), older_epochs=True)
    assert sorted(folder.names("_penstock")) == sorted(others)


def test_the_journal_does_not_grow(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path, batch_of(5, number))

    assert len(folder_at(tmp_path).names("_penstock/log/p")) == 10
    assert folder_at(tmp_path).names("_penstock") == ["log"]
