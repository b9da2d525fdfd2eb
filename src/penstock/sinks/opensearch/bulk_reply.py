"""What a search server says of each row of a bulk request, and what follows from it."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import msgspec

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.errors import ConfigError, TransientError
from penstock.http.http_reply import Reply

# What an operator has to change in the cluster: rows wait for it, they are not wrong.
_BLOCKED = ("cluster_block_exception", "index_closed_exception")
_FULL = "maximum shards open"


class Verdict(Enum):
    """What becomes of a row."""

    # The server has a document of this id already, or a newer one: a repeat, or an older write.
    KNOWN = "known"
    RESEND = "resend"
    REFUSED = "refused"


class Outcome(NamedTuple):
    """What the server said of one row that it did not write."""

    row: int
    verdict: Verdict
    error_type: str
    error: str


def outcomes(reply: Reply, rows: int, *, conflicts_are_known: bool) -> list[Outcome]:
    """Return what was not written, of this many rows.

    Raises
    ------
    ConfigError
        When the index does not exist and may not be made, or the user may not write to it.
    TransientError
        When the cluster does not accept writes now.
    """
    # The items of a request in which all went well need not be read.
    if b'"errors":false' in reply.body[:100]:
        return []
    items = _items(reply, rows)
    failed = []
    for row, item in enumerate(items):
        ((action, result),) = item.items()
        is_gone = action == "delete" and result.get("status") == 404
        if "error" in result and not is_gone:
            failed.append(_outcome(row, result, conflicts_are_known=conflicts_are_known))
    return failed


def _items(reply: Reply, rows: int) -> list[dict[str, dict[str, Any]]]:
    try:
        read = msgspec.json.decode(reply.body, type=dict[str, Any])
        items: list[dict[str, dict[str, Any]]] = read["items"]
    except (msgspec.MsgspecError, KeyError):
        raise ConfigError(f"{reply} is not the reply of a search server; check 'url'") from None
    if len(items) != rows:
        raise TransientError(f"{reply} is about {len(items)} rows, and {rows} were sent")
    return items


def _outcome(row: int, result: dict[str, Any], *, conflicts_are_known: bool) -> Outcome:
    status, kind, text = result.get("status", 500), *described(result["error"])
    if status == 409 and kind == "version_conflict_engine_exception":
        verdict = Verdict.KNOWN if conflicts_are_known else Verdict.RESEND
        return Outcome(row, verdict, kind, text)
    if kind in _BLOCKED or _FULL in text:
        raise TransientError(f"the search server does not accept rows now: {text}", 5.0)
    if status == 404 and kind == "index_not_found_exception":
        raise ConfigError(
            f"the search server has no such index and may not make it: {text}; make the index, or allow "
            "action.auto_create_index there"
        )
    if status in (401, 403):
        raise ConfigError(f"the search server does not let this user write: {text}; check 'auth'")
    if status == 429 or status >= 500:
        return Outcome(row, Verdict.RESEND, kind, text)
    return Outcome(row, Verdict.REFUSED, kind, text)


def described(error: Any) -> tuple[str, str]:
    """Return the kind of an error of the server, and its reason with those below it.

    >>> described({"type": "a", "reason": "b", "caused_by": {"type": "c", "reason": "d"}})
    ('a', 'a: b; c: d')
    """
    if not isinstance(error, dict):
        return "error", _shown(str(error))
    reasons: list[str] = []
    cause: Any = error
    while isinstance(cause, dict) and len(reasons) < 5:
        reasons.append(f"{cause.get('type')}: {cause.get('reason')}")
        cause = cause.get("caused_by")
    return _shown(str(error.get("type"))), _shown("; ".join(reasons))


def _shown(text: str) -> str:
    return printable(mask(text[:2000]))
