"""How a sink with marks stores what a write covered, and what a claim of an epoch makes of it."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import replace

from penstock.pipeline import CLAIMED, LastWrite, Mark, refuse_claim, renumbered
from penstock.pipeline.values import ranges_as_json, ranges_from_json


def claimed(
    last: LastWrite | None, epoch: int, pipeline: str, continues: Container[int] = ()
) -> LastWrite:
    """Return the mark of a claimed epoch, with the ranges of the last write.

    A write of an epoch that the claimed one continues becomes the last write of the claimed one.

    >>> write = claimed(LastWrite(Mark(7, 3, 1), {("t", 0): (5, 8)}), 8, "p")
    >>> write.mark, write.ranges, write.mark_of(("t", 0))
    (Mark(epoch=8, batch=-1, part=0), {('t', 0): (5, 8)}, Mark(epoch=7, batch=3, part=1))
    >>> claimed(LastWrite(Mark(7, 3, 1)), 8, "p", continues={7}).mark
    Mark(epoch=8, batch=3, part=1)
    """
    mark = Mark(epoch, CLAIMED, 0)
    refuse_claim(last, mark, pipeline)
    if last is None:
        return LastWrite(mark)
    marks = {place: renumbered(last.mark_of(place), epoch, continues) for place in last.ranges}
    newest = max(marks.values(), default=renumbered(last.mark, epoch, continues))
    return replace(last, mark=newest if newest.epoch == epoch else mark, marks=marks)


def covered_text(write: LastWrite) -> str:
    """Return what a write covered as a short text: ranges of offsets, and the ids of their topics.

    A claim keeps the mark of the write that its ranges are of.

    >>> covered_text(LastWrite(Mark(7, 3, 1), {("t", 0): (5, 8)}, {"t": "x1"}))
    '{"ranges":{"t":{"0":[5,8]}},"topics":{"t":"x1"}}'
    """
    covered = {"ranges": json.loads(ranges_as_json(write.ranges)), "topics": write.topics}
    written = max((write.mark_of(place) for place in write.ranges), default=write.mark)
    if written != write.mark:
        covered["written"] = written
    return json.dumps(covered, separators=(",", ":"))


def write_of(mark: Mark, text: str | None) -> LastWrite:
    """Return the write with this mark from what `covered_text` wrote; an older release stored nothing.

    >>> write = write_of(Mark(8, -1, 0), '{"ranges":{"t":{"0":[5,8]}},"written":[7,3,1]}')
    >>> write.ranges, write.mark_of(("t", 0))
    ({('t', 0): (5, 8)}, Mark(epoch=7, batch=3, part=1))
    """
    covered = json.loads(text or "{}")
    ranges = ranges_from_json(json.dumps(covered.get("ranges", {})))
    written = Mark(*covered.get("written", mark))
    marks = dict.fromkeys(ranges, written) if written != mark else {}
    return LastWrite(mark, ranges, covered.get("topics", {}), marks)
