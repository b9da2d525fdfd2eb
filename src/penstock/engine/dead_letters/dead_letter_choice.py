"""A selection of dead letters: by id, stage, error text, and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, nearest

if TYPE_CHECKING:
    from penstock.engine.dead_letters.letter import DeadLetter


class Stage(str, Enum):
    """Where a record failed; `unreadable`: a dead letter that cannot be read as one."""

    imported = "import"
    decode = "decode"
    step = "step"
    write = "write"
    late = "late"
    unreadable = "unreadable"


@dataclass(frozen=True)
class Choice:
    """A selection of dead letters."""

    ids: tuple[str, ...] = ()
    stage: Stage | None = None
    error: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def of(self, letters: Iterable[DeadLetter]) -> list[DeadLetter]:
        """Return the selected dead letters; refuse an unknown id."""
        all_of_them = list(letters)
        known = {name: None for letter in all_of_them for name in (letter.id, letter.full_id)}
        for wanted in self.ids:
            if wanted not in known:
                hint = nearest(wanted, list(known)[:1000]) if known else "there is none"
                raise ConfigError(f"there is no dead letter {wanted!r}; {hint}")
        return [letter for letter in all_of_them if self._means(letter)]

    def _means(self, letter: DeadLetter) -> bool:
        text = f"{letter.error_type}: {letter.error}".lower()
        at = letter.timestamp
        return all(
            (
                not self.ids or letter.id in self.ids or letter.full_id in self.ids,
                self.stage is None or letter.stage == self.stage.value,
                self.error is None or self.error.lower() in text,
                self.since is None or (at is not None and at >= self.since),
                self.until is None or (at is not None and at < self.until),
            )
        )


def choice(
    ids: tuple[str, ...],
    stage: Stage | None,
    error: str | None,
    since: str | None,
    until: str | None,
) -> Choice:
    """Return the selection that the options describe."""
    return Choice(ids, stage, error, moment(since, "--since"), moment(until, "--until"))


def moment(text: str | None, option: str) -> datetime | None:
    """Return the time that an option of this name gives; without a zone it is in UTC."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} is not a time; allowed: ISO-8601, as in 2026-01-31T08:00 (UTC)"
        ) from None
    return given if given.tzinfo else given.replace(tzinfo=timezone.utc)


def named(letters: list[DeadLetter]) -> list[tuple[str, DeadLetter]]:
    """Return each dead letter with its id: the longer one if a record has several dead letters."""
    ids = Counter(letter.id for letter in letters)
    return [(x.id if ids[x.id] == 1 else x.full_id, x) for x in letters]
