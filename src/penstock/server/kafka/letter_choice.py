"""Which dead letters a request is about, as parameters or a body have it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from penstock.engine.dead_letters.dead_letter_choice import Choice, Stage, moment
from penstock.errors import ConfigError

Time = Annotated[str, Field(max_length=100)]


class LetterFilter(BaseModel):
    """Which dead letters: those that agree with everything that is given."""

    model_config = ConfigDict(extra="forbid")

    stage: Stage | None = None
    error: str | None = Field(default=None, max_length=1000, description="A part of the error.")
    since: Time | None = Field(default=None, description="ISO-8601, included.")
    until: Time | None = Field(default=None, description="ISO-8601, excluded.")

    def choice(self, ids: tuple[str, ...] = ()) -> Choice:
        """Return the selection."""
        since, until = moment(self.since, "since"), moment(self.until, "until")
        return Choice(ids, self.stage, self.error, since, until)


class LetterSelection(LetterFilter):
    """Which dead letters to change; `all` for every one that waits."""

    ids: list[Annotated[str, Field(max_length=400)]] = Field(default=[], max_length=1000)
    all: bool = False

    def selected(self, what: str) -> Choice:
        """Return the selection; refuse one that is empty, which would mean all."""
        wanted = self.choice(tuple(self.ids))
        if wanted == Choice() and not self.all:
            raise ConfigError(
                f"say which dead letters to {what}: ids, stage, error, since, until, or all: true"
            )
        return wanted
