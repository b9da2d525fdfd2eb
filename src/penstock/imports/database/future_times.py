"""Times that are later than the database's clock, as a wrong clock or "never" (9999-12-31) writes them.

A position at such a time would pass every row that gets the right time from then on.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pyarrow as pa

from penstock.imports.database.table_range import Value

# Times without a zone are those of any zone: the first one is so far ahead of UTC.
_FIRST_ZONE = timedelta(hours=14)
# Texts of SQLite may have a T where these have a blank, and so are compared by their days.
_TEXTS = timedelta(days=2)
_TIME = re.compile(r"(\d{4,6})-\d\d-\d\d")
_ZONE = "+00:00"


def allowed_ahead(kind: pa.DataType) -> timedelta:
    """Return how much later than the clock in UTC a right time of such a column can be."""
    if not pa.types.is_timestamp(kind):
        return _TEXTS
    return timedelta() if kind.tz else _FIRST_ZONE


def limit_of(newest: Value | None, now: datetime, ahead: timedelta) -> str | None:
    """Return the latest time that is not in the future, if the newest one of a column is later.

    >>> now = datetime(2024, 1, 1, 12)
    >>> limit_of("9999-12-31 00:00:00.000000", now, timedelta())
    '2024-01-01 12:00:00.000000'
    >>> limit_of("2024-01-01 11:00:00.000000", now, timedelta()), limit_of(17, now, timedelta())
    (None, None)
    """
    found = _TIME.match(newest) if isinstance(newest, str) else None
    if found is None or not isinstance(newest, str):
        return None
    limit = (now + ahead).isoformat(" ", "microseconds")
    is_later = (len(found[1]), newest) > (4, limit)
    return limit + (_ZONE if newest.endswith(_ZONE) else "") if is_later else None
