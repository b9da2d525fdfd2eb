"""A person sets the group to the offsets that it has: nothing is doubled, whatever happens afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.engine.model import Process, World

from penstock.kafka.offsets import CommittedOffset


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, "exactly-once", commit=True, by_partition=False)
    made.patch(monkeypatch)
    yield made
    for each in made.processes:
        if each.is_suspended:
            made.process = each
            each.wake("kill")


def started(world: World, state: str) -> Process:
    process = Process(world, state)
    world.processes.append(process)
    world.act(process, lambda: world.start(process))
    return process


def reset_to_where_it_is(world: World) -> None:
    world.committed = {p: CommittedOffset(each.offset, "") for p, each in world.committed.items()}


@pytest.mark.parametrize("after", range(24))
@pytest.mark.parametrize("fate", ["kill", "suspend"])
def test_a_reset_to_the_same_offsets_doubles_nothing_when_another_state_folder_takes_over(
    world: World, fate: str, after: int
) -> None:
    world.ends = [5, 5, 5][: len(world.ends)]
    first = started(world, "a")
    world.act(first, lambda: world.batch(first, 50))
    first.is_dead = True
    reset_to_where_it_is(world)
    world.ends = [9 for _ in world.ends]
    again = started(world, "a")
    world.act(again, lambda: world.batch(again, 50), fate, after)
    if fate == "kill":
        again.is_dead = True
        shutil.rmtree(world.folder / "a")
    other = started(world, "b")
    world.act(other, lambda: world.batch(other, 50))
    assert other.error is None
    assert not world.duplicates()
    assert not world.missing()
