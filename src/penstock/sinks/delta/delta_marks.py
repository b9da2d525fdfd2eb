"""How a mark is written in Delta's log: the numbers of its applications, and the text of a commit.

Delta keeps one number for each application, whatever happens to old versions. An epoch of a pipeline is
one application, the batch and the part of its last write are the number. The ranges of offsets are in the
text that a commit carries for its user, which the log keeps as long as the commit itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from penstock.pipeline import CLAIMED, LastWrite, Mark
from penstock.sinks.fencing import covered_text, write_of

Numbers = dict[str, int]

# A batch's number and its part's number in the one number that Delta keeps.
_PARTS = 1 << 24
_BATCHES = 1 << 38
_CLAIM = "claimed"

CLOSED = (1 << 63) - 1
"""The number of an epoch that a later one has taken over from: Delta skips every write of it."""


def epochs_in(numbers: Mapping[str, int], pipeline: str) -> dict[str, int]:
    """Return what closes the pipeline's epochs: their applications, each with the greatest number.

    >>> epochs_in({"penstock~p~7": 33554433, "penstock~p~8~claimed": 0}, "p") == {
    ...     "penstock~p~7": CLOSED, "penstock~p~8": CLOSED}
    True
    """
    known = marks_in(numbers, pipeline)
    epochs = {mark.epoch for mark in known.values()}
    names = {number_of(pipeline, Mark(epoch, 0, 0))[0] for epoch in epochs}
    by_part = {name for name in known if not name.endswith(_CLAIM)}
    return dict.fromkeys(sorted(names | by_part), CLOSED)


def guard(pipeline: str) -> str:
    """Return the application that every claim of the pipeline changes, and every append reads."""
    return f"penstock~{pipeline}"


def claim_of(pipeline: str, epoch: int) -> str:
    """Return the application of a claim by Delta's public writer, which takes no number below 0."""
    return f"penstock~{pipeline}~{epoch}~{_CLAIM}"


def number_of(pipeline: str, mark: Mark) -> tuple[str, int]:
    """Return the application and its number for a mark.

    Numbers by the clock, as the notes on dead letters have, are too large to have the part in the same
    number: their part is in the application's name.

    >>> number_of("p", Mark(7, 2, 1)), number_of("p", Mark(7, 1_800_000_000_000, 1))
    (('penstock~p~7', 33554433), ('penstock~p~7~1', 1800000000000))
    """
    epoch, batch, part = mark
    if batch < _BATCHES and part < _PARTS:
        return f"penstock~{pipeline}~{epoch}", batch * _PARTS + part
    return f"penstock~{pipeline}~{epoch}~{part}", batch


def marks_in(numbers: Mapping[str, int], pipeline: str) -> dict[str, Mark]:
    """Return the pipeline's marks among the numbers of all applications.

    >>> marks_in({"penstock~p~7": 33554433, "penstock~p": 7, "penstock~p~replay~0": 1}, "p")
    {'penstock~p~7': Mark(epoch=7, batch=2, part=1)}
    >>> marks_in({claim_of("p", 8): 0}, "p")
    {'penstock~p~8~claimed': Mark(epoch=8, batch=-1, part=0)}
    """
    form = re.compile(rf"penstock~{re.escape(pipeline)}~(\d+)(?:~(\d+|{_CLAIM}))?")
    marks = {}
    for application, number in numbers.items():
        if (match := form.fullmatch(application)) is None:
            continue
        epoch, part = int(match[1]), match[2]
        if part == _CLAIM:
            marks[application] = Mark(epoch, CLAIMED, 0)
        elif part is None:
            marks[application] = Mark(epoch, *divmod(number, _PARTS))
        else:
            marks[application] = Mark(epoch, number, int(part))
    return marks


def newest_in(numbers: Mapping[str, int], pipeline: str) -> Mark | None:
    """Return the pipeline's greatest mark among the numbers of all applications."""
    return max(marks_in(numbers, pipeline).values(), default=None)


def as_text(pipeline: str, write: LastWrite) -> str:
    """Return the text of a commit.

    >>> as_text("p", LastWrite(Mark(7, 2, 1), {("t", 0): (5, 8)}))
    '{"penstock":{"pipeline":"p","mark":[7,2,1],"ranges":{"t":{"0":[5,8]}},"topics":{}}}'
    """
    content = {"pipeline": pipeline, "mark": write.mark, **json.loads(covered_text(write))}
    return json.dumps({"penstock": content}, separators=(",", ":"))


def ranges_in(actions: Iterable[str], pipeline: str, mark: Mark) -> LastWrite | None:
    """Return the write with this mark and its ranges, None if the actions are another commit's.

    A commit of an older release has the number and no text: its ranges are not known.

    >>> text = as_text("p", LastWrite(Mark(7, 2, 1), {("t", 0): (5, 8)}))
    >>> commit = json.dumps({"commitInfo": {"userMetadata": text}}, separators=(",", ":"))
    >>> ranges_in([commit], "p", Mark(7, 2, 1)).ranges, ranges_in([commit], "p", Mark(7, 2, 2))
    ({('t', 0): (5, 8)}, None)
    """
    numbers: Numbers = {}
    for action in actions:
        if action.startswith('{"commitInfo":'):
            text = json.loads(action)["commitInfo"].get("userMetadata") or ""
            write = _write_in(text, pipeline)
            if write is not None and write.mark == mark:
                return write
        elif action.startswith('{"txn":'):
            number = json.loads(action)["txn"]
            numbers[number["appId"]] = number["version"]
    application, number = number_of(pipeline, mark)
    return LastWrite(mark) if numbers.get(application) == number else None


def _write_in(text: str, pipeline: str) -> LastWrite | None:
    if not text.startswith('{"penstock":'):
        return None
    content = json.loads(text)["penstock"]
    if content["pipeline"] != pipeline:
        return None
    return write_of(Mark(*content["mark"]), json.dumps(content))
