"""The step `log`: a line of the log for each message."""

from __future__ import annotations

from typing import Literal

import structlog
from pydantic import Field

from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.expressions import Template
from penstock.flows.message import Message
from penstock.flows.running.bound_step import BoundStep, EachMessage
from penstock.flows.running.stages import Bind

_LONGEST = 2000


@step_kind
class LogStep(FlowStep):
    """Writes a line to the log; the message goes on unchanged, whatever it is. Secrets are masked."""

    name = "log"
    main_option = "message"

    message: Template = Field(description="The line; `${...}` in it are expressions.")
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Its level."
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what logs."""
        text, level = self.message.evaluator(), self.level
        log = structlog.get_logger("penstock.flows")

        def apply(message: Message) -> Message:
            try:
                line = printable(mask(str(text(message))))
            except Exception as error:  # the message goes on, whatever it is
                line = f"(no text: {error})"
            getattr(log, level)("flow message", step=path, text=line[:_LONGEST])
            return message

        return EachMessage(apply)
