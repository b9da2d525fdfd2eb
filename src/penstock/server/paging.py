"""Long lists in pages: a cursor is the key of the last item, in a form of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.errors import ConfigError

Item = TypeVar("Item")
MOST, DEFAULT = 1000, 100


def page(
    items: Sequence[Item], most: int, key: Callable[[Item], Any], shown: Callable[[Item], Any]
) -> dict[str, Any]:
    """Return a page: `items` has one more than `most` if there are others after it.

    >>> reply = page(["a", "b", "c"], 2, key=str, shown=str.upper)
    >>> reply["items"], after(reply["next"])
    (['A', 'B'], 'b')
    >>> page(["c"], 2, key=str, shown=str.upper)
    {'items': ['C'], 'next': None}
    """
    shown_items = [shown(item) for item in items[:most]]
    following = _cursor(key(items[most - 1])) if len(items) > most else None
    return {"items": shown_items, "next": following}


def after(cursor: str | None) -> Any:
    """Return the key that a cursor is of; None for the first page."""
    if not cursor:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, RecursionError):
        raise ConfigError(
            f"{cursor[:40]!r} is not a cursor; give the 'next' of the page before, or none"
        ) from None


def _cursor(key: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode("ascii")
