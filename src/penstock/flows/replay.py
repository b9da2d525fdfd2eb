"""Runs dead letters of a flow again, from the step that failed, with the message as it was there.

At-least-once, as the flow itself: a replay that a kill cut short is finished by the next one, and what it
published before the kill is published again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby

import msgspec

from penstock.engine.dead_letters.letter import DeadLetter
from penstock.engine.dead_letters.letter_log import Plan
from penstock.engine.dead_letters.replay_lock import alone
from penstock.engine.dead_letters.replays import Replayed, Replays, refuse_unreadable
from penstock.flows.compiled import CompiledFlow
from penstock.flows.dead_letters import (
    definition_of,
    edited,
    first_step,
    letters_of,
    message_of,
    rewritten,
    with_step,
    without_flow,
)
from penstock.flows.definition.flow import Flow
from penstock.flows.live.dead_letter_writer import DeadLetterWriter
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.spark.flow_pipeline import FlowStep
from penstock.pipeline import Delivery, Pipeline

_MOST = 500


def replay_flow(
    pipeline: Pipeline,
    step: FlowStep,
    letters: Sequence[DeadLetter],
    values: Mapping[str, bytes] | None = None,
    *,
    messages: Mapping[str, bytes] | None = None,
    from_step: str | None = None,
    take_over: bool = False,
) -> Replayed:
    """Replay letters that are still open, each from the step that failed, or all from another one.

    `values` has other payloads, by the ids of letters, `messages` other messages as JSON. Interrupted
    replays are finished first.
    """
    refuse_unreadable(letters)
    news = values or {}, messages or {}
    given = [_changed(letter, step.flow, *news, from_step) for letter in letters]
    with alone(pipeline), ExitStack() as stack:
        replays = _FlowReplays(pipeline, step, stack)
        done, error = replays.finish(take_over)
        done += replays.run(given)
    if error:
        raise error
    return done


def _changed(
    letter: DeadLetter,
    flow: Flow,
    values: Mapping[str, bytes],
    messages: Mapping[str, bytes],
    from_step: str | None,
) -> DeadLetter:
    """Return the letter with what the user gives; raise where it cannot be replayed."""
    if from_step is not None:
        letter = with_step(letter, flow, from_step)
    if letter.full_id in values:
        letter = edited(letter, flow, values[letter.full_id])
    if letter.full_id in messages:
        letter = rewritten(letter, messages[letter.full_id])
    first_step(letter, flow)
    message_of(letter, flow)
    return letter


class _FlowReplays(Replays):
    """The replays of one call, with the clients of the flow."""

    def __init__(self, pipeline: Pipeline, step: FlowStep, stack: ExitStack) -> None:
        super().__init__(pipeline)
        self._at_most_once = pipeline.delivery is Delivery.AT_MOST_ONCE
        self._flow = step.flow
        self._compiled = CompiledFlow(step.flow)
        self._live = LiveSystems(step.connection)
        self._writer = DeadLetterWriter(step.source, step.flow.dead_letter_topic)
        stack.callback(self._live.close)
        stack.callback(self._writer.close)

    def _run(self, plan: Plan, letters: list[DeadLetter]) -> Replayed:
        """Run the letters; those that are done are noted at once, and where it fails the others wait."""
        done = Replayed()
        open_letters = [each for each in letters if each.identity not in plan.replayed]
        try:
            for group in _groups(open_letters, self._flow):
                done += self._run_group(plan, group)
        except Exception:
            self._log.release(plan)
            raise
        return done

    def _run_group(self, plan: Plan, letters: list[DeadLetter]) -> Replayed:
        if self._at_most_once:
            self._log.end(plan, letters)
        messages = [message_of(letter, self._flow) for letter in letters]
        step = first_step(letters[0], self._flow)
        result = self._compiled.run(messages, self._live.systems(), from_step=step)
        again = {"epoch": plan.number, "batch": 0}
        records = [msgspec.structs.replace(without_flow(each), **again) for each in letters]
        failed = letters_of(result.dead_letters, records.__getitem__, definition_of(self._flow))
        self._writer.write(failed)
        if not self._at_most_once:
            self._log.end(plan, letters)
        return Replayed(len(letters), len(result.results), len(failed))


def _groups(letters: Sequence[DeadLetter], flow: Flow) -> Iterator[list[DeadLetter]]:
    """Yield letters that begin with the same step, in their order; each group runs as one batch."""
    for _, same in groupby(letters, key=lambda each: first_step(each, flow)):
        group = list(same)
        yield from (group[at : at + _MOST] for at in range(0, len(group), _MOST))
