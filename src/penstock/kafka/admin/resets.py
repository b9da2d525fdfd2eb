"""Moves a group to other offsets of its topics: first the plan, which changes nothing, then a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.errors import ConfigError
from penstock.kafka.admin import groups
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.lookup import Watermarks, partitions_of, require
from penstock.kafka.handle import Partition
from penstock.kafka.offsets import GroupOffsets
from penstock.kafka.positions import Position, epoch_ms

ALLOWED = (
    "earliest, latest (or end), an offset (42), a shift from the committed offset (+10, -10), "
    "a time (2024-05-01T12:00:00Z, UTC when it names no zone), milliseconds (@1714560000000), "
    "or an age (-30s, -5m, -2h, -1d)"
)

Target = str | int | datetime | Mapping[Partition, int]
Chosen = str | Iterable[str | Partition] | None
Offsets = dict[Partition, int]


@dataclass(frozen=True, slots=True)
class Move:
    """One partition of a plan: where the group is, and where it is to go.

    `wanted` is what was asked for; where the partition does not reach that far, `new` is its edge.

    >>> Move("trades", 0, current=7, new=10, wanted=50).note
    'wanted 50; the partition ends at 10'
    """

    topic: str
    partition: int
    current: int | None
    new: int
    wanted: int

    @property
    def change(self) -> int | None:
        """Return how far the group moves: negative to read records again, positive to skip some."""
        return None if self.current is None else self.new - self.current

    @property
    def note(self) -> str:
        """Return how the partition's range limited the wanted offset; empty if it did not."""
        if self.new == self.wanted:
            return ""
        edge = "ends" if self.wanted > self.new else "starts"
        return f"wanted {self.wanted}; the partition {edge} at {self.new}"


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """The new offsets of a group, in each partition; `state` is None for a group that does not exist."""

    group: str
    moves: tuple[Move, ...]
    state: str | None
    members: int = 0

    @property
    def offsets(self) -> Offsets:
        """Return the offsets to commit."""
        return {(move.topic, move.partition): move.new for move in self.moves}


def plan_reset(ask: AdminCalls, group: str, to: Target, topics: Chosen = None) -> ResetPlan:
    """Plan the new offsets of a group; nothing is changed."""
    description = groups.find(ask, group)
    if description is None and topics is None and not isinstance(to, Mapping):
        groups.look_up(ask, group)
    with ask.group(group) as offsets:
        partitions = _partitions(ask, offsets, to, topics)
        current = offsets.committed(partitions)
    wanted = _wanted(to, Watermarks(ask), partitions, current)
    return ResetPlan(
        group=group,
        moves=_moves(Watermarks(ask), current, wanted),
        state=None if description is None else description.state,
        members=0 if description is None else len(description.members),
    )


def reset(ask: AdminCalls, plan: ResetPlan) -> None:
    """Execute a plan, unless the group has members by now: they would commit over it."""
    description = groups.find(ask, plan.group)
    if description is not None:
        groups.refuse_members(f"resetting group {plan.group!r}", len(description.members))
    with ask.group(plan.group) as offsets:
        offsets.commit(plan.offsets)


def _partitions(
    ask: AdminCalls, offsets: GroupOffsets, to: Target, topics: Chosen
) -> Sequence[Partition]:
    if isinstance(to, Mapping):
        if topics is not None:
            raise ConfigError(
                "offsets by partition name the partitions themselves: leave topics out"
            )
        return _named(ask, to)
    if topics is not None:
        return _named(ask, [topics] if isinstance(topics, str) else topics)
    partitions = sorted(offsets.committed())
    if not partitions:
        raise ConfigError(
            f"group {offsets.group!r} has committed nothing yet: name the topics to set it up for"
        )
    return partitions


def _named(ask: AdminCalls, chosen: Iterable[str | Partition]) -> list[Partition]:
    named = list(chosen)
    whole = partitions_of(ask, [each for each in named if isinstance(each, str)])
    single = [each for each in named if not isinstance(each, str)]
    require(ask, single)
    return sorted({*whole, *single})


def _wanted(
    to: Target, marks: Watermarks, partitions: Sequence[Partition], current: Offsets
) -> Offsets:
    if isinstance(to, Mapping):
        return dict(to)
    if isinstance(to, str) and re.fullmatch(r"[+-]\d+", to):
        return _shifted(int(to), partitions, current)
    position = _position(to)
    if position.kind == "offset":
        return dict.fromkeys(partitions, position.value)
    return position.offsets(marks, partitions)


def _position(to: str | int | datetime) -> Position:
    if isinstance(to, datetime):
        return Position("time", epoch_ms(to))
    try:
        return Position.parse(str(to))
    except ConfigError:
        raise ConfigError(f"{to!r} is not a position to reset to; allowed: {ALLOWED}") from None


def _shifted(by: int, partitions: Sequence[Partition], current: Offsets) -> Offsets:
    nowhere = [
        f"{topic}:{number}" for topic, number in partitions if (topic, number) not in current
    ]
    if nowhere:
        raise ConfigError(
            f"a shift of {by:+d} starts from the committed offset, and there is none in "
            f"{', '.join(nowhere)}; reset these to earliest, latest or an offset"
        )
    return {where: current[where] + by for where in partitions}


def _moves(marks: Watermarks, current: Offsets, wanted: Offsets) -> tuple[Move, ...]:
    first, end = marks.earliest(wanted), marks.latest(wanted)
    return tuple(
        Move(*where, current.get(where), min(max(offset, first[where]), end[where]), offset)
        for where, offset in sorted(wanted.items())
    )
