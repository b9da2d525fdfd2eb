"""Which letters a request selects, also when it is taken again after an interruption."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.replays import Replayed
from penstock.errors import ConfigError
from penstock.flows.definition.reading import parse_flow
from penstock.flows.spark.flow_pipeline import FlowStep, flow_pipeline
from penstock.pipeline.reading import parse_pipeline
from penstock.worker import letter_replay
from penstock.worker.letter_replay import replay_letters

PIPELINE = parse_pipeline("name: orders\nsource: {kafka: orders}\nsink: discard\n", "a test")


def letter(offset: int, stage: str = "decode", batch: int = 0) -> DeadLetter:
    return DeadLetter(topic="orders", partition=0, offset=offset, stage=stage, epoch=7, batch=batch)


class Engine:
    """What the engine was asked to replay."""

    def __init__(self) -> None:
        self.waiting = [letter(1), letter(2, "step"), letter(3), letter(3, batch=1)]
        self.asked: list[tuple[list[str], dict[str, bytes], bool]] = []

    def replay(
        self, _pipeline: Any, letters: list[DeadLetter], values: Any, *, take_over: bool
    ) -> Replayed:
        self.asked.append(([each.full_id for each in letters], values, take_over))
        return Replayed(letters=len(letters))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()

    class Store:
        def __init__(self, _pipeline: Any) -> None:
            return

        def waiting(self) -> list[DeadLetter]:
            return made.waiting

    monkeypatch.setattr(letter_replay, "DeadLetterStore", Store)
    monkeypatch.setattr(letter_replay, "replay", made.replay)
    return made


IDS = ["orders-0-1~7~0", "orders-0-2~7~0", "orders-0-3~7~0", "orders-0-3~7~1"]


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        ({"all": True}, IDS),
        ({"stage": "step"}, IDS[1:2]),
        ({"ids": ["orders-0-3"]}, IDS[2:]),
        ({"ids": ["orders-0-3~7~1", "orders-0-1"], "stage": "decode"}, [IDS[0], IDS[3]]),
    ],
)
def test_the_letters_of_a_request_are_replayed(
    engine: Engine, wanted: dict[str, Any], selected: list[str]
) -> None:
    replay_letters(PIPELINE, wanted, None, repeated=False)
    replay_letters(PIPELINE, wanted | {"take_over": True}, None, repeated=False)

    assert engine.asked == [(selected, {}, False), (selected, {}, True)]


def test_a_corrected_value_is_for_one_letter(engine: Engine) -> None:
    replay_letters(PIPELINE, {"ids": ["orders-0-1"]}, b"", repeated=False)
    assert engine.asked == [([IDS[0]], {IDS[0]: b""}, False)]

    with pytest.raises(ConfigError, match="one dead letter, but 2 are selected: name one by its"):
        replay_letters(PIPELINE, {"ids": ["orders-0-3"]}, b"x", repeated=False)


def test_a_request_that_is_taken_again_leaves_out_what_is_done(engine: Engine) -> None:
    """The engine is called in any case: it finishes what was begun."""
    wanted = {"ids": ["orders-0-1", "orders-0-9"]}
    with pytest.raises(ConfigError, match="there is no dead letter 'orders-0-9'"):
        replay_letters(PIPELINE, wanted, None, repeated=False)
    replay_letters(PIPELINE, wanted, None, repeated=True)
    replay_letters(PIPELINE, {"ids": ["orders-0-9"]}, b"x", repeated=True)

    assert engine.asked == [([IDS[0]], {}, False), ([], {}, False)]


def test_letters_of_a_flow_begin_with_the_step_that_failed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "name: orders\nconnection: {addresses: 'kafka:9092'}\ntrigger: {timer: 5s}\nsteps: [{log: x}]"
    pipeline = flow_pipeline(parse_flow(text, "a test"))
    steps = []

    def replay_flow(pipeline: Any, step: FlowStep, *given: Any, take_over: bool) -> Replayed:
        steps.append(step)
        return engine.replay(pipeline, *given, take_over=take_over)

    monkeypatch.setattr(letter_replay, "replay_flow", replay_flow)
    replay_letters(pipeline, {"ids": ["orders-0-1"]}, b"1", repeated=False)

    assert steps == pipeline.steps
    assert engine.asked == [([IDS[0]], {IDS[0]: b"1"}, False)]
