"""Dead letters are read back, replayed through their pipeline once, as they were or mended; dropped."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Connection, memory_table, start
from penstock.engine.letters import Letterbox, replay
from penstock.testing import fill, read_all

VALUES = ['{"n": 1}', "not json", '{"n": "two"}', '{"n": 3}', '{"n": 0}']


@pytest.fixture(params=["topic", "files"])
def definition(
    request: Any, connection: Connection, topic: Any, pipeline: Any, unique: str, tmp_path: Any
) -> Any:
    """A pipeline that has put three letters away: two at decode, one at a step."""
    fill(connection, topic(), VALUES, key=lambda n: b"k%d" % n)
    kept: Any = f"{unique}.dead" if request.param == "topic" else {"files": str(tmp_path / "dead")}
    made = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int not null", "metadata": ["key"]}},
        steps=[{"sql": "SELECT n, 12 / n AS share, kafka_key FROM rows"}],
        sink={"memory": unique},
        delivery="exactly-once",
        dead_letters=kept,
    )
    with start(made, once=True) as running:
        assert running.wait(280)
        assert running.progress().failed == 3
    return made


def kept(unique: str) -> list[int]:
    return sorted(memory_table(unique).to_arrow().column("n").to_pylist())


def test_letters_are_told_replayed_and_dropped(definition: Any, unique: str, topic: Any) -> None:
    letters = {letter.offset: letter for letter in Letterbox(definition).waiting()}
    assert {offset: letter.stage for offset, letter in letters.items()} == {
        1: "decode", 2: "decode", 4: "step",
    }  # fmt: skip
    assert letters[2].id == f"{topic()}-0-2"
    assert (letters[2].key, letters[2].value) == (b"k2", b'{"n": "two"}')
    assert letters[4].error_type == "DIVIDE_BY_ZERO"
    assert letters[4].timestamp is not None

    # As it was: it fails again, and is a new letter in the place of the old one.
    done = replay(definition, [letters[4]])
    assert (done.letters, done.rows, done.failed_again) == (1, 0, 1)
    again = {letter.offset: letter for letter in Letterbox(definition).waiting()}
    assert again.keys() == {1, 2, 4}
    assert again[4].identity != letters[4].identity

    # Mended: its row is in the table, and the letter is gone.
    done = replay(definition, [again[4]], {again[4].id: b'{"n": 4}'})
    assert (done.letters, done.rows, done.failed_again) == (1, 1, 0)
    assert kept(unique) == [1, 3, 4]
    Letterbox(definition).drop([again[1]])
    assert [letter.offset for letter in Letterbox(definition).waiting()] == [2]


def test_a_replay_that_was_cut_short_is_finished_and_writes_nothing_twice(
    definition: Any, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (letter,) = (x for x in Letterbox(definition).waiting() if x.offset == 2)
    with monkeypatch.context() as broken:
        broken.setattr(Letterbox, "end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            replay(definition, [letter], {letter.id: b'{"n": 2}'})
    assert kept(unique) == [1, 2, 3]
    assert letter.offset not in {x.offset for x in Letterbox(definition).waiting()}

    replay(definition, [])

    assert kept(unique) == [1, 2, 3]
    assert Letterbox(definition).unfinished() == {}
    assert letter.offset not in {x.offset for x in Letterbox(definition).waiting()}


def test_records_of_others_in_the_topic_are_no_letters(
    definition: Any, connection: Connection, unique: str, request: Any
) -> None:
    if "files" in request.node.name:
        return
    fill(connection, f"{unique}.dead", ["hello"])
    assert len(read_all(connection, f"{unique}.dead")) == 4
    assert len(Letterbox(definition).waiting()) == 3
