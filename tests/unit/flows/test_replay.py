"""Replays of dead letters of a flow: each is done once, whatever ends a replay, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Connection
from penstock.engine.dead_letters.letter import UNREADABLE, DeadLetter, as_headers, from_record
from penstock.engine.dead_letters.letter_log import LetterLog
from penstock.errors import BrokerUnavailableError, ConfigError, TransientError
from penstock.flows import CompiledFlow, Flow, FlowStoppedError, Message
from penstock.flows import replay as replays
from penstock.flows.dead_letters import Forms, definition_of, letters_of, payload_of, text_of
from penstock.flows.live import live_systems
from penstock.flows.spark.flow_pipeline import flow_pipeline, flow_step
from penstock.flows.testing import CannedReplies, canned_systems
from penstock.record import Record

STEPS = [
    {"split": "$"},
    {"id": "divide", "map": "10 / payload"},
    {"id": "send", "publish": {"kafka": {"topic": "out"}}},
]


class Topic(LetterLog):
    """The topic of the dead letters in memory; a kill may end the writing of notes."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self.kills: set[str] = set()

    def _load(self) -> Iterable[DeadLetter]:
        return [letter for record in self.records if (letter := from_record(record))]

    def _append(self, notes: Sequence[DeadLetter]) -> None:
        if notes[0].stage in self.kills:
            self.kills.clear()
            raise KeyboardInterrupt
        self.store(notes)

    def store(self, letters: Sequence[DeadLetter]) -> None:
        for each in letters:
            where = "t.dead-letters", 0, len(self.records)
            record = {"key": each.key, "value": each.value, "headers": as_headers(each)}
            self.records.append(Record.of(*where, **record))


class World:
    """A flow, its dead letters, and a system that takes what it publishes, or is away."""

    def __init__(self, state: Path, patch: pytest.MonkeyPatch) -> None:
        self.topic, self.canned, self.state = Topic(), CannedReplies(), str(state)
        self.is_away = False
        world = self

        class Letters:
            def __init__(self, *_: Any) -> None:
                self.close = lambda: None

            def write(self, letters: Sequence[Forms]) -> None:
                world.topic.store([each.whole for each in letters if each.whole])

        patch.setattr("penstock.engine.dead_letters.replays.DeadLetterStore", lambda _: self.topic)
        patch.setattr(replays, "DeadLetterWriter", Letters)
        patch.setattr(live_systems.LiveSystems, "publish", self._publish)

    def _publish(self, step: str, operation: Any, requests: Any) -> Any:
        if self.is_away:
            raise BrokerUnavailableError("no broker answers")
        return self.canned.publish(step, operation, requests)

    def flow(self, *steps: Any, **options: Any) -> Any:
        flow = Flow(name="t", trigger={"kafka": "a"}, steps=[*(steps or STEPS)], **options)
        return flow_pipeline(flow, Connection(brokers="nowhere"), state=self.state)

    def fails(self, pipeline: Any, *payloads: bytes) -> None:
        step = flow_step(pipeline)
        assert step
        messages = [Message(each, {"topic": "a"}) for each in payloads]
        failed = CompiledFlow(step.flow).run(messages, canned_systems()).dead_letters

        def record(n: int) -> DeadLetter:
            return DeadLetter(stage="step", topic="a", partition=0, offset=n, value=payloads[n])

        letters = letters_of(failed, record, definition_of(step.flow))
        self.topic.store([each.whole for each in letters if each.whole])

    def replay(self, pipeline: Any, values: dict[str, bytes] | None = None, **options: Any) -> Any:
        self.topic._all = None
        step = flow_step(pipeline)
        assert step
        return replays.replay_flow(pipeline, step, self.topic.waiting(), values, **options)

    @property
    def waiting(self) -> list[str]:
        self.topic._all = None
        return [letter.full_id for letter in self.topic.waiting()]

    @property
    def sent(self) -> list[Any]:
        return [each.fields["value"] for each in self.canned.published]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_letters_are_replayed_once_with_what_the_user_fixed(world: World) -> None:
    flow = world.flow()
    world.fails(flow, b"[0, 5, 0]", b"[0]")
    first, second, third = world.waiting
    assert (first, second, third) == ("a-0-0.0~0~0", "a-0-0.2~0~0", "a-0-1.0~0~0")

    done = world.replay(flow, {first: b"2", second: b"4"})

    assert (done.letters, done.rows, done.failed_again) == (3, 2, 1)
    assert world.sent == [b"5", b"2.5"]
    (again,) = world.topic.waiting()
    assert (again.id, again.epoch > 0, again.value) == ("a-0-1.0", True, b"[0]")
    assert world.replay(flow, {again.full_id: b"10"}).rows == 1
    assert world.replay(flow).letters == 0
    assert (world.waiting, world.sent) == ([], [b"5", b"2.5", b"1"])


@pytest.mark.parametrize(
    ("moment", "published", "finishes"),
    [("planned", 0, False), ("begun", 0, False), ("replayed", 2, True)],
)
def test_a_kill_at_any_moment_loses_nothing(
    world: World, moment: str, published: int, finishes: bool
) -> None:
    flow = world.flow()
    world.fails(flow, b"[0, 0]")
    values = dict.fromkeys(world.waiting, b"2")
    world.topic.kills.add(moment)

    with pytest.raises(KeyboardInterrupt):
        world.replay(flow, values)
    assert len(world.sent) == published
    if finishes:
        assert world.waiting == [], "they belong to the replay that was begun"
    world.replay(flow, dict.fromkeys(world.waiting, b"2"))
    if not finishes:  # those that were planned and not begun wait again after it
        world.replay(flow, dict.fromkeys(world.waiting, b"2"))

    assert world.waiting == []
    assert world.sent == [b"5"] * (published + 2)


def test_letters_of_a_replay_that_fails_wait_again(world: World) -> None:
    flow = world.flow()
    world.fails(flow, b"[0]")
    values = dict.fromkeys(world.waiting, b"2")
    before = world.waiting
    world.is_away = True

    with pytest.raises(TransientError, match="the flow waits at send: KAFKA:UNAVAILABLE"):
        world.replay(flow, values)
    assert world.waiting == before

    world.is_away = False
    assert world.replay(flow, values).rows == 1
    assert world.sent == [b"5"]


def test_a_flow_that_stops_leaves_its_letters(world: World) -> None:
    flow = world.flow(on_error="dead-letter")
    world.fails(flow, b"[0]")
    stopping = world.flow(*STEPS[:1], {**STEPS[1], "on_error": "stop"})

    with pytest.raises(FlowStoppedError):
        world.replay(stopping)
    assert world.waiting == ["a-0-0.0~0~0"]


def test_letters_of_different_steps_begin_each_with_its_own(world: World) -> None:
    first = {"id": "first", "map": {"n": "1 / payload.n"}}
    flow = world.flow(first, {"id": "second", "map": "1 / (payload.n - 1)"})
    world.fails(flow, b'{"n": 0}', b'{"n": 1}')

    done = world.replay(flow, {"a-0-0~0~0": b'{"n": 0.5}', "a-0-1~0~0": b'{"n": 3}'})

    assert (done.rows, done.failed_again) == (2, 0)


def test_a_replay_may_begin_with_another_step(world: World) -> None:
    flow = world.flow()
    world.fails(flow, b"[0]")

    assert world.replay(flow, from_step="send").rows == 1
    assert world.sent == [b"0"]


def test_what_cannot_be_read_is_refused_before_anything_is_written(world: World) -> None:
    flow = world.flow()
    world.fails(flow, b"[0]")
    step = flow_step(flow)
    assert step
    unreadable = DeadLetter(stage=UNREADABLE, topic="a", partition=0, offset=1, error="no place")
    before = len(world.topic.records)

    with pytest.raises(ConfigError, match="cannot be replayed, because it cannot be read"):
        replays.replay_flow(flow, step, [*world.topic.waiting(), unreadable])
    assert len(world.topic.records) == before


def test_the_payload_that_is_shown_is_the_one_at_the_failed_step(world: World) -> None:
    flow = world.flow({"map": {"n": "payload.a"}}, {"map": "1 / payload.n"})
    world.fails(flow, b'{"a": 0}')
    step = flow_step(flow)
    assert step

    (letter,) = world.topic.waiting()

    assert payload_of(letter, step.flow) == b'{"n":0}'


def test_a_message_is_replayed_with_the_attributes_and_variables_that_the_user_gives(
    world: World,
) -> None:
    flow = world.flow(
        {"set": {"variable": {"by": "0"}}},
        {"id": "divide", "map": {"n": "10 / variable.by", "at": "attribute.at", "of": "payload.n"}},
        {"id": "send", "publish": {"kafka": {"topic": "out"}}},
    )
    world.fails(flow, b'{"n": 1}')
    (letter,) = world.topic.waiting()
    step = flow_step(flow)
    assert step
    shown = json.loads(text_of(letter, step.flow))
    assert shown == {
        "payload": {"$bytes": '{"n": 1}'},
        "attribute": {"topic": "a"},
        "variable": {"by": 0},
    }

    shown |= {"variable": {"by": 4}, "attribute": {"at": "noon"}}
    world.replay(flow, messages={letter.full_id: json.dumps(shown).encode()})

    assert [json.loads(each) for each in world.sent] == [{"n": 2.5, "at": "noon", "of": 1}]
    assert world.waiting == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"variable": 1}', "cannot be read"),
        (b'{"variables": {}}', "has no 'variables'; did you mean 'variable'"),
    ],
)
def test_a_new_message_that_cannot_be_read_is_refused_and_the_letter_waits(
    world: World, text: bytes, reason: str
) -> None:
    flow = world.flow({"id": "divide", "map": "1 / 0"})
    world.fails(flow, b"1")
    (letter,) = world.waiting

    with pytest.raises(ConfigError, match=reason):
        world.replay(flow, messages={letter: text})

    assert world.waiting == [letter]
