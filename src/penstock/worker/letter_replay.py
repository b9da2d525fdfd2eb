"""A replay that was asked for over the API: its dead letters, through the deployment's pipeline again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.dead_letters import DeadLetter, DeadLetterStore, Replayed, replay
from penstock.engine.dead_letters.dead_letter_choice import Choice, Stage, choice
from penstock.errors import ConfigError
from penstock.flows.replay import replay_flow
from penstock.flows.spark.flow_pipeline import flow_step
from penstock.pipeline import Pipeline


def replay_letters(
    pipeline: Pipeline, wanted: Mapping[str, Any], value: bytes | None, *, repeated: bool
) -> Replayed:
    """Replay the letters that are wanted; `value` is the corrected one of a single letter.

    Of a replay that is `repeated`, because it was interrupted, some letters may be done already, and
    some planned: those are finished first.
    """
    letters = _chosen(wanted, DeadLetterStore(pipeline).waiting(), repeated=repeated)
    if value is not None and len(letters) != 1 and (letters or not repeated):
        raise ConfigError(
            f"another value is for one dead letter, but {len(letters)} are selected: name one by its id"
        )
    values = {} if value is None else {letter.full_id: value for letter in letters}
    take_over = bool(wanted.get("take_over"))
    if step := flow_step(pipeline):
        return replay_flow(pipeline, step, letters, values, take_over=take_over)
    return replay(pipeline, letters, values, take_over=take_over)


def _chosen(
    wanted: Mapping[str, Any], waiting: list[DeadLetter], *, repeated: bool
) -> list[DeadLetter]:
    ids = tuple(wanted.get("ids", ()))
    if repeated and ids:
        known = {name for letter in waiting for name in (letter.id, letter.full_id)}
        if not (ids := tuple(each for each in ids if each in known)):
            return []  # a choice without ids is one of all letters
    return _choice(ids, wanted).of(waiting)


def _choice(ids: tuple[str, ...], wanted: Mapping[str, Any]) -> Choice:
    stage = wanted.get("stage")
    times = wanted.get("since"), wanted.get("until")
    return choice(ids, Stage(stage) if stage else None, wanted.get("error"), *times)
