"""The trap for sinks that take one write for another because their labels look alike."""

from __future__ import annotations

from collections.abc import Callable

Write = Callable[[str, int, int, list[int]], None]
"""Write ids as this pipeline, batch and part, always in the same epoch, which is 1."""

PIPELINE = "a.b_c"
OTHERS = [
    "a.b_c-1-1-1",  # begins like a label with other separators
    "a.b_c2",  # begins with the name
    "xa.b_c",  # ends with it
    "a-b_c",  # the same for a regular expression
    "a.bxc",  # the same for SQL's LIKE
    "A.b_C",  # the same where case is ignored
]


def writes_that_look_alike(write: Write) -> list[int]:
    """Make writes that differ in a little, repeat some of them; return the ids that must be there."""
    write(PIPELINE, 1, 1, [1, 2])
    write(PIPELINE, 1, 11, [3])  # the label of this part begins with that of the first
    write(PIPELINE, 11, 1, [4])
    for number, other in enumerate(OTHERS, 5):
        write(other, 1, 1, [number])
    for _ in range(2):
        write(PIPELINE, 1, 1, [1, 2])
        write(OTHERS[-1], 1, 1, [4 + len(OTHERS)])
    return list(range(1, 5 + len(OTHERS)))
