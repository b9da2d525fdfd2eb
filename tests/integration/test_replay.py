"""Dead letters are read back, replayed through their pipeline once, as they were or edited; dropped."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql.types import StructType

from penstock import Admin, Connection, Producer, memory_table, start
from penstock.engine import spark_session
from penstock.engine.dead_letter_batch import TABLE
from penstock.engine.dead_letters import DeadLetter, DeadLetterStore, replay
from penstock.engine.dead_letters.letter import as_headers
from penstock.pipeline import Opening
from penstock.testing import eventually, fill, read_all

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


@pytest.mark.by_turns
def test_letters_are_listed_replayed_and_dropped(definition: Any, unique: str, topic: Any) -> None:
    letters = {letter.offset: letter for letter in DeadLetterStore(definition).waiting()}
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
    again = {letter.offset: letter for letter in DeadLetterStore(definition).waiting()}
    assert again.keys() == {1, 2, 4}
    assert again[4].identity != letters[4].identity

    # Edited: its row is in the table, and the letter is gone.
    done = replay(definition, [again[4]], {again[4].id: b'{"n": 4}'})
    assert (done.letters, done.rows, done.failed_again) == (1, 1, 0)
    assert kept(unique) == [1, 3, 4]
    DeadLetterStore(definition).drop([again[1]])
    assert [letter.offset for letter in DeadLetterStore(definition).waiting()] == [2]


@pytest.fixture
def letters(request: Any, connection: Connection, pipeline: Any, unique: str, tmp_path: Any) -> Any:
    """A pipeline with three letters, two of decode and one of a step; its own run is not needed."""
    in_files = getattr(request, "param", "topic") == "files"
    if not in_files:
        with Admin(connection) as admin:
            admin.create_topic(f"{unique}.dead", 2)
    made = pipeline(
        source={"kafka": "orders"},
        decode={"json": {"schema": "n int not null"}},
        steps=[{"sql": "SELECT n, 12 / n AS share FROM rows"}],
        sink={"memory": unique},
        delivery="exactly-once",
        dead_letters={"files": str(tmp_path / "dead")} if in_files else f"{unique}.dead",
    )
    origin: Any = {"topic": "orders", "partition": 0, "epoch": 7, "batch": 3}
    values = {1: ("decode", b"not json"), 2: ("decode", b"two"), 4: ("step", b'{"n": 0}')}
    DeadLetterStore(made)._add(
        [DeadLetter(offset=n, stage=at, value=v, **origin) for n, (at, v) in values.items()]
    )
    return made


both_kinds = pytest.mark.parametrize("letters", ["topic", "files"], indirect=True)


def waiting(definition: Any) -> dict[int, DeadLetter]:
    return {letter.offset: letter for letter in DeadLetterStore(definition).waiting()}


@pytest.mark.by_turns
@both_kinds
def test_a_replay_that_was_cut_short_is_finished_and_writes_nothing_twice(
    letters: Any, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = waiting(letters)[2]
    with monkeypatch.context() as broken:
        broken.setattr(DeadLetterStore, "end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            replay(letters, [letter], {letter.id: b'{"n": 2}'})
    assert kept(unique) == [2]
    assert waiting(letters).keys() == {1, 4}

    assert replay(letters, []).finished == 1

    assert kept(unique) == [2]
    assert DeadLetterStore(letters).unfinished() == []
    assert waiting(letters).keys() == {1, 4}


def test_records_of_others_in_the_topic_are_no_letters(
    letters: Any, connection: Connection, unique: str
) -> None:
    fill(connection, f"{unique}.dead", ["hello"])
    assert len(read_all(connection, f"{unique}.dead")) == 4
    assert waiting(letters).keys() == {1, 2, 4}


@both_kinds
def test_the_same_letters_replayed_by_two_callers_are_written_once(
    letters: Any, unique: str
) -> None:
    found = waiting(letters)
    both = [found[2], found[4]]
    values = {found[2].id: b'{"n": 2}', found[4].id: b'{"n": 4}'}
    DeadLetterStore(letters).drop([found[1]])

    first = replay(letters, both, values)
    elsewhere = letters.model_copy(update={"state": f"{letters.state}-of-another-machine"})
    second = replay(elsewhere, [*both, found[1]], values)

    assert (first.letters, first.rows, first.taken) == (2, 2, 0)
    assert (second.letters, second.rows, second.taken) == (0, 0, 3)
    assert kept(unique) == [2, 4]
    assert waiting(letters) == {}


@pytest.mark.by_turns
@both_kinds
def test_two_letters_of_one_record_are_replayed_one_by_one_and_prevent_no_later_replay(
    letters: Any, unique: str
) -> None:
    found = waiting(letters)
    # As after a reset of the group: the record failed in two epochs.
    earlier = msgspec.structs.replace(found[4], epoch=found[4].epoch - 1)
    DeadLetterStore(letters)._add([earlier])

    done = replay(letters, [found[4], earlier])

    assert (done.letters, done.rows, done.failed_again) == (2, 0, 2)
    again = [letter for letter in DeadLetterStore(letters).waiting() if letter.offset == 4]
    assert len({letter.identity for letter in again}) == 2
    done = replay(letters, [*again, found[2]], {again[0].full_id: b'{"n": 4}', found[2].id: b"2"})
    assert (done.letters, done.rows, done.failed_again) == (3, 1, 2)
    assert kept(unique) == [4]


def test_of_several_letters_only_those_that_are_refused_again_are_letters_again(
    letters: Any, unique: str
) -> None:
    found = waiting(letters)

    done = replay(letters, list(found.values()), {found[2].id: b'{"n": 2}'})

    assert (done.letters, done.rows, done.failed_again) == (3, 1, 2)
    assert kept(unique) == [2]
    assert {offset: x.stage for offset, x in waiting(letters).items()} == {
        1: "decode",
        4: "step",
    }
    assert DeadLetterStore(letters).unfinished() == []


@pytest.mark.by_turns
@pytest.mark.parametrize("moment", [1, 2, 3, 4, 6])
def test_a_replay_that_is_killed_between_any_two_of_its_notes_writes_each_letter_once(
    letters: Any, unique: str, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    found = waiting(letters)
    values = {found[1].id: b'{"n": 6}', found[2].id: b'{"n": 2}'}
    add, calls = DeadLetterStore._add, []

    def killed(box: DeadLetterStore, notes: Any) -> None:
        calls.append(notes)
        if len(calls) == moment:
            raise KeyboardInterrupt
        add(box, notes)

    with monkeypatch.context() as broken:
        broken.setattr(DeadLetterStore, "_add", killed)
        with pytest.raises(KeyboardInterrupt):
            replay(letters, list(found.values()), values)

    replay(letters, [])
    left = waiting(letters)
    replay(letters, [left[n] for n in (1, 2) if n in left], values)

    assert kept(unique) == [2, 6]
    assert waiting(letters).keys() == {4}
    assert DeadLetterStore(letters).unfinished() == []


def test_a_replay_that_was_begun_elsewhere_is_left_alone_until_it_is_taken_over(
    letters: Any, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = waiting(letters)
    elsewhere = letters.model_copy(update={"state": f"{letters.state}-of-another-machine"})
    with monkeypatch.context() as broken:
        broken.setattr(DeadLetterStore, "end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            replay(elsewhere, [found[2]], {found[2].id: b'{"n": 2}'})

    done = replay(letters, [found[2], found[4]], {found[4].id: b'{"n": 4}'})
    assert (done.letters, done.rows, done.taken, len(done.elsewhere)) == (1, 1, 1, 1)
    assert len(DeadLetterStore(letters).unfinished()) == 1

    assert replay(letters, [], take_over=True).elsewhere == ()
    assert DeadLetterStore(letters).unfinished() == []
    assert kept(unique) == [2, 4]


def test_one_letter_that_cannot_be_read_hides_no_other(
    letters: Any, connection: Connection, unique: str
) -> None:
    ours = as_headers(next(iter(waiting(letters).values())))
    hostile: list[list[tuple[str, bytes | None]]] = [
        [("penstock.x", b"\xff"), ("penstock.stage", b"\xff")],
        [(name, b"-1" if name == "penstock.offset" else value) for name, value in ours],
        [(name, b"planned" if name == "penstock.stage" else value) for name, value in ours],
        [("penstock.stage", None), *ours[:3], ("big", b"x" * 100_000)],
    ]
    with Producer(connection) as producer:
        for headers in hostile:
            producer.produce(f"{unique}.dead", b"k", b"\x00\xff", headers=headers)

    found = DeadLetterStore(letters).waiting()

    assert sorted(x.offset for x in found if x.is_readable) == [1, 2, 4]
    bad = [x for x in found if not x.is_readable]
    assert [x.topic for x in bad] == [f"{unique}.dead"] * 4
    assert DeadLetterStore(letters).drop(bad) == 4
    assert len(DeadLetterStore(letters).waiting()) == 3


def test_headers_of_a_record_that_look_like_ours_come_back_with_it(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    own = [("penstock.x", b"\xff"), ("penstock.stage", b"dropped"), ("penstock.offset", b"77")]
    with Producer(connection) as producer:
        producer.produce(topic(), b"k", b"not json", headers=own, timestamp=1_700_000_000_123)
    spark = spark_session()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    made = pipeline(
        source={"kafka": topic()}, decode={"json": {"schema": "n int"}}, sink={"memory": unique}
    )
    try:
        with start(made, once=True) as running:
            assert running.wait(280)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    (letter,) = DeadLetterStore(made).waiting()

    assert letter.headers == own
    assert (letter.stage, letter.offset, letter.epoch > 0) == ("decode", 0, True)
    assert letter.timestamp is not None
    at = letter.timestamp.astimezone(timezone.utc)
    assert at.isoformat(timespec="milliseconds") == "2023-11-14T22:13:20.123+00:00"


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["files", "delta", "iceberg", "database"])
def test_a_table_of_dead_letters_with_a_short_epoch_grows_and_has_epochs_after_2038(
    pipeline: Any, tmp_path: Path, kind: str
) -> None:
    place = {
        "files": str(tmp_path / "dead"),
        "delta": str(tmp_path / "dead"),
        "iceberg": {"warehouse": str(tmp_path), "table": "db.dead"},
        "database": {"url": f"sqlite:///{tmp_path}/dead.db", "table": "dead"},
    }[kind]
    made = pipeline(source={"kafka": "t"}, sink="discard", dead_letters={kind: place})
    box = DeadLetterStore(made)
    fields = [
        field if field.name != "epoch" else StructType().add("epoch", "integer")["epoch"]
        for field in TABLE
    ]
    opening = Opening(spark_session(), "p.dead-letters", made.connection)
    made.dead_letter_sink.open(opening).prepare(StructType(fields))
    letter = DeadLetter(topic="t", partition=0, offset=1, stage="step", epoch=2**31 + 5, value=b"v")

    box._add([letter])

    (found,) = box.waiting()
    assert (found.identity, found.value) == (letter.identity, b"v")
    assert box.drop([found]) == 1
    assert box.waiting() == []


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["topic", "files", "delta", "database"])
def test_replays_and_drops_while_the_pipeline_runs_disturb_neither(
    connection: Connection, topic: Any, pipeline: Any, unique: str, tmp_path: Path, kind: str
) -> None:
    place: Any = {
        "topic": f"{unique}.dead",
        "files": {"files": str(tmp_path / "dead")},
        "delta": {"delta": str(tmp_path / "dead")},
        "database": {"database": {"url": f"sqlite:///{tmp_path}/dead.db", "table": "dead"}},
    }[kind]
    made = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int not null"}},
        sink={"memory": unique},
        delivery="exactly-once",
        dead_letters=place,
    )
    fill(connection, topic(), ['{"n": 0}', "bad 1", "bad 2"])
    with start(made) as running:
        eventually(lambda: running.progress().records == 3)
        for n in range(3, 9, 3):
            fill(connection, topic(), [{"n": n}, f"bad {n + 1}", f"bad {n + 2}"])
            first, second, *_ = DeadLetterStore(made).waiting()
            value = b'{"n": %d}' % first.offset
            assert replay(made, [first], {first.id: value}).rows == 1
            assert DeadLetterStore(made).drop([second]) == 1
            eventually(lambda n=n: running.progress().records == n + 3)
        progress = running.progress()
    assert (progress.restarts, progress.rows, progress.failed) == (0, 3, 6)
    assert kept(unique) == [0, 1, 3, 4, 6]
    assert waiting(made).keys() == {7, 8}
