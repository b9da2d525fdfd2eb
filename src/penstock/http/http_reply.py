"""What a server replied, and what a status that says no means: come back later, or never."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.errors import ConfigError, PenstockError, TerminalError, TransientError

# A server that cannot be reached, is busy or is restarted; others say that a retry would not help.
_PASSING = (408, 425, 429)
# A server that wants more, as one whose clock is wrong, is asked again after this time.
_LONGEST_WAIT = 86_400.0


@dataclass(frozen=True)
class Reply:
    """What a server replied, and from which address it came."""

    url: str
    status: int
    headers: Message
    body: bytes

    def __str__(self) -> str:
        start = printable(mask(self.body[:200].decode("utf-8", "replace")))
        return f"{shown(self.url)} (HTTP {self.status}, beginning with {start!r})"


def shown(url: str) -> str:
    """Return an address for messages: short, in one line, without secrets."""
    text = printable(mask(url))
    return text if len(text) <= 300 else text[:300] + "..."


def refusal(reply: Reply) -> PenstockError:
    """Return the error for a status that says no."""
    if reply.status in _PASSING or reply.status >= 500:
        return TransientError(f"{reply} is busy or away; it is asked again", retry_after(reply))
    if reply.status == 401:
        return ConfigError(f"{reply} refuses the credentials; check 'auth'")
    return TerminalError(f"{reply} refuses the request; check 'url', 'params' and 'auth'")


def retry_after(reply: Reply, otherwise: float = 1.0) -> float:
    """Return how long a server wants to be left alone: seconds, or until a date; at most a day."""
    given = reply.headers.get("Retry-After", "").strip()
    try:
        if given.isdigit():
            asked = float(given)
        else:
            asked = parsedate_to_datetime(given).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return min(max(1.0, asked), _LONGEST_WAIT)
