"""Which offset of the target belongs to an offset of the source: a few points, denser towards the end.

A point (s, t) says: every record of the source at s or later is in the target at t or later. It is noted
when a transaction begins, with the end of the target's partition before anything is sent, and is part of
the position that this transaction writes. So it holds whoever else writes to the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Point = tuple[int, int]


def with_point(points: Sequence[Point], new: Point) -> list[Point]:
    """Return the points with a new one, thinned: one for each doubling of the distance to the newest.

    Points at or after the new one are of records that are read once more, after an operator's reset.

    >>> with_point([(0, 0)], (100, 130))
    [(0, 0), (100, 130)]
    >>> points = []
    >>> for n in range(1000):
    ...     points = with_point(points, (n * 10, n * 10))
    >>> len(points), points[0], points[-1]
    (10, (0, 0), (9990, 9990))
    """
    kept: dict[int, Point] = {}
    earlier = [point for point in points if point[0] < new[0] and point[1] <= new[1]]
    # The oldest of those at about the same distance: it is the one that grows old.
    for point in reversed(earlier):
        kept[(new[0] - point[0]).bit_length()] = point
    return [*sorted(kept.values()), new]


def translated(points: Sequence[Point], offset: int) -> int | None:
    """Return the target's offset for one of the source: at most that of its record; None if too old.

    >>> translated([(0, 0), (100, 130)], 99), translated([(0, 0), (100, 130)], 4000)
    (0, 130)
    >>> translated([(50, 7)], 49) is None
    True
    """
    return max((target for source, target in points if source <= offset), default=None)


def read_points(given: Any) -> list[Point]:
    """Return the points of a position; none where it has none, or an operator wrote something else.

    >>> read_points([[0, 0], [100, 130]]), read_points("all"), read_points([[1, "a"]])
    ([(0, 0), (100, 130)], [], [])
    """
    if not isinstance(given, list):
        return []
    pairs = [pair for pair in given if isinstance(pair, (list, tuple)) and len(pair) == 2]
    numbers = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
    return numbers if len(numbers) == len(given) else []
