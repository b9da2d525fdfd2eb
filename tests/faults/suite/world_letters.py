"""A person in another process: replays some dead letters of each pipeline, corrected or as they are, and
drops others, while the pipelines run. What is done with a letter follows from the record's number."""

from __future__ import annotations

import json
import sys

from tests.faults.suite.load import BAD_EVERY, is_bad
from tests.faults.suite.world import Run, World, corrected, number_of

from penstock import Pipeline
from penstock.engine import stop_session
from penstock.engine.dead_letters import DeadLetterStore, alone, replay

CORRECT, AGAIN, DROP, LEAVE = range(4)
# The most letters of one pipeline in one call: each costs a write or more.
_MOST = 6


def fate(n: int) -> int:
    """Return what is done with the dead letter of a record."""
    return n // BAD_EVERY % 4 if is_bad(n) else LEAVE


def act(pipeline: Pipeline) -> dict[str, list[int]]:
    """Replay and drop; return the numbers of the records, by what was done."""
    waiting = [each for each in DeadLetterStore(pipeline).waiting() if each.is_readable]
    chosen = [each for each in waiting if fate(number_of(each)) != LEAVE]
    del chosen[_MOST:]
    by_fate = {f: [each for each in chosen if fate(number_of(each)) == f] for f in range(3)}
    again = by_fate[CORRECT] + by_fate[AGAIN]
    values = {each.full_id: corrected(number_of(each)) for each in by_fate[CORRECT]}
    if again:
        done = replay(pipeline, again, values)
        assert done.letters == len(again), done
        assert done.failed_again == len(by_fate[AGAIN]), done
    with alone(pipeline):
        assert DeadLetterStore(pipeline).drop(by_fate[DROP]) == len(by_fate[DROP])
    names = {CORRECT: "corrected", AGAIN: "again", DROP: "dropped"}
    return {names[f]: [number_of(each) for each in found] for f, found in by_fate.items()}


def main(world_text: str, run_text: str) -> None:
    world, run = World.read(world_text), Run.read(run_text)
    try:
        for sink, state in run.states.items():
            done = act(world.pipeline(sink, state, run.definition))
            print(json.dumps({"sink": sink, **done}), flush=True)
    finally:
        stop_session()


if __name__ == "__main__":
    main(*sys.argv[1:])
