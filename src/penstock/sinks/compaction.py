"""When a sink joins small files: the option that file and lake sinks share, and whether it is time."""

from __future__ import annotations

import time

from pydantic import BaseModel, ConfigDict, Field

from penstock.pipeline.values import Duration


class Compaction(BaseModel):
    """How often small files are joined."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    every: Duration = Field(
        default="1h",
        validate_default=True,
        description="The shortest time between two joinings, as in `1h`.",
    )

    def is_due(self, last: float | None) -> bool:
        """Return whether it is time again; `last` is the monotonic time of the last joining.

        >>> Compaction(every="1h").is_due(None), Compaction(every="1h").is_due(time.monotonic())
        (True, False)
        """
        return last is None or time.monotonic() >= last + self.every
