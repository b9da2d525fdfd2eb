"""A replay: which letters go together, one process at a time, and marks that no other write has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.dead_letters.letter import IMPORTED, UNREADABLE, DeadLetter
from penstock.engine.dead_letters.replay_lock import alone
from penstock.engine.dead_letters.replay_write import _as_record, _mark
from penstock.engine.dead_letters.replaying import _edited, _rounds, replay
from penstock.engine.dead_letters.replays import Replayed
from penstock.engine.state_dir import state_folder
from penstock.errors import ConfigError, SetupError
from penstock.pipeline import Mark, Pipeline


def pipeline(state: Path, *steps: Any) -> Pipeline:
    return Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": "t"},
        decode={"json": {"schema": "symbol string, at timestamp"}},
        steps=list(steps),
        sink="discard",
        state=str(state),
    )


def letter(offset: int, epoch: int = 1, **more: Any) -> DeadLetter:
    given = {"stage": "decode", "topic": "t", "partition": 0, "value": b"bad"} | more
    return DeadLetter(offset=offset, epoch=epoch, **given)


def test_a_record_that_failed_twice_is_in_two_rounds() -> None:
    first, again, other = letter(1), letter(1, epoch=2), letter(2)
    rounds = [set(map(id, each)) for each in _rounds([first, again, other])]
    assert rounds == [{id(first), id(other)}, {id(again)}]


def test_a_value_is_replaced_by_the_id_of_its_letter_and_first_by_the_full_one() -> None:
    values = {"t-0-1": b"good", "t-0-1~2~0": b"better"}
    fixed = [_edited(each, values) for each in (letter(1), letter(1, epoch=2), letter(3))]
    assert [each.value for each in fixed] == [b"good", b"better", b"bad"]


def test_the_results_of_rounds_add_up() -> None:
    first = Replayed(letters=2, rows=3, failed_again=1, elsewhere=("there",))
    assert first + Replayed(1, 1, 1, taken=4) == Replayed(3, 4, 2, 4, elsewhere=("there",))


def test_what_cannot_be_replayed_is_refused_before_anything_starts(tmp_path: Path) -> None:
    keeps_state = {"deduplicate": {"by": "symbol", "time": "at", "within": "2m"}}
    with pytest.raises(ConfigError, match="has a step that keeps state"):
        replay(pipeline(tmp_path, keeps_state), [letter(1)])
    with pytest.raises(ConfigError, match=r"'t-0-1' cannot be replayed, because it cannot be read"):
        replay(pipeline(tmp_path), [letter(1, stage=UNREADABLE)])
    with pytest.raises(
        ConfigError, match=r"'t-0-1' cannot be replayed.*in no topic before.*too long"
    ):
        replay(pipeline(tmp_path), [letter(1, stage=IMPORTED, error="too long")])
    assert not list(tmp_path.iterdir())


def test_one_process_at_a_time_replays_the_letters_of_a_state_folder(tmp_path: Path) -> None:
    with alone(pipeline(tmp_path)), pytest.raises(ConfigError, match="another process replays"):
        alone(pipeline(tmp_path))
    alone(pipeline(tmp_path)).close()


def test_a_state_folder_that_cannot_be_written_is_not_taken_for_another_process(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("in its place")
    with pytest.raises(SetupError, match="cannot write the state"):
        alone(pipeline(tmp_path / "file"))


def test_a_replay_has_a_name_that_no_pipeline_and_no_other_replay_has(tmp_path: Path) -> None:
    def plan(number: int, owner: str) -> Any:
        return SimpleNamespace(number=number, owner=owner)

    assert _mark("p", plan(7, "here")) == ("p~replay-7", Mark(7, 0, 0))
    assert _mark("p", plan(7, "")) == ("p~replay", Mark(0, 7, 0))  # of an earlier version
    assert state_folder(pipeline(tmp_path)) == f"{tmp_path}/p"


def test_a_letter_becomes_the_record_that_it_was() -> None:
    whole = letter(5, key=b"k", headers=[("a", None), ("a", b"1")])
    headers = [{"key": "a", "value": None}, {"key": "a", "value": b"1"}]
    assert _as_record(whole) == (b"k", b"bad", "t", 0, 5, None, 0, headers)
