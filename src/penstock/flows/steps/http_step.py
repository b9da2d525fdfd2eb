"""The step `http`: a request for each message, its reply into the payload or a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from penstock.flows.definition.http_request import (
    HttpOptions,
    Method,
    checked_statuses,
    is_success,
)
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.definition.target import PAYLOAD, Target
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.expressions import Expression, ExpressionError
from penstock.flows.expressions.value_text import decoded, from_json
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind
from penstock.flows.running.systems import HttpReply, HttpRequest

_SHOWN = 200
_LONGEST_WAIT = 3600.0


@step_kind
class HttpStep(HttpOptions, FlowStep):
    """Sends a request. A status that is not of `success` fails with `HTTP:` and the status.

    The status is in `attribute.status`. With `retry` the request is sent again after errors that may
    pass; a `Retry-After` of the server is honoured.
    """

    name = "http"
    main_option = "url"

    method: Method = Field(default="GET", description="The method.")
    body: Expression | None = Field(
        default=None, description="The body; objects and lists are sent as JSON. Default: none."
    )
    success: Annotated[tuple[str, ...], BeforeValidator(checked_statuses)] = Field(
        default=("2xx",), min_length=1, description="The statuses that are a success."
    )
    result: Literal["auto", "json", "text", "bytes", "reply"] = Field(
        default="auto",
        description="What of the reply is taken: `json`, `text` or `bytes`; `auto`: JSON where its type "
        "says so, otherwise bytes; `reply`: an object with `status`, `headers` and `body`.",
    )
    into: Target = Field(default=PAYLOAD, description="Where it goes.")
    parallel: int = Field(
        default=1, ge=1, le=64, description="How many requests of a batch are under way at a time."
    )

    def acts_outside(self) -> bool:
        """Return whether requests may change something."""
        return self.method not in ("GET", "HEAD")

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what sends the requests."""
        return _Sends(self, path, self.request(self.method, self.body))

    def summary(self) -> str:
        """Return the method and the address."""
        return f"{self.method} {self.url.given}"


class _Sends(BoundStep):
    def __init__(
        self, step: HttpStep, path: str, request: Callable[[Message], HttpRequest]
    ) -> None:
        self._step = step
        self._path = path
        self._request = request

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads of the step: each has connections, which stay open from batch to batch."""
        return ThreadPoolExecutor(self._step.parallel, thread_name_prefix="flow-http")

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        def one(message: Message) -> Message | Fault:
            try:
                return self._one(message, run)
            except Exception as error:  # whatever a message causes belongs to this message
                return fault_of(error, "HTTP")

        in_order = getattr(run.systems.requests, "in_order", False)
        if self._step.parallel > 1 and len(messages) > 1 and not in_order:
            made = list(self._threads.map(one, messages))
        else:
            made = [one(message) for message in messages]
        pairs = list(zip(messages, made, strict=True))
        failed = [(message, each) for message, each in pairs if isinstance(each, Fault)]
        return Attempt([each for each in made if isinstance(each, Message)], failed)

    def _one(self, message: Message, run: FlowRun) -> Message:
        step = self._step
        reply = run.systems.requests.send(self._path, step, self._request(message))
        require_success(reply, step.success)
        attribute = {**message.attribute, "status": reply.status}
        return step.into.applied(
            message.changed(attribute=attribute), result_of(reply, step.result)
        )


def require_success(reply: HttpReply, success: tuple[str, ...]) -> None:
    """Raise the fault of a status that says no."""
    if is_success(reply.status, success):
        return
    start = reply.body[:_SHOWN].decode("utf-8", "replace")
    wait = {name.lower(): value for name, value in reply.headers.items()}.get("retry-after", "")
    seconds = min(float(wait), _LONGEST_WAIT) if wait.isdigit() and len(wait) < 9 else 0.0
    raise Fault(f"HTTP:{reply.status}", f"the reply begins with {start!r}", seconds)


def result_of(reply: HttpReply, result: str) -> Any:
    """Return what of a reply is taken."""
    kind = {name.lower(): value for name, value in reply.headers.items()}.get("content-type", "")
    is_json = "json" in kind.partition(";")[0].lower()
    if result == "bytes" or (result == "auto" and not is_json):
        return reply.body
    try:
        if result in ("json", "auto"):
            return from_json(reply.body, "the reply") if reply.body else None
        text = decoded(reply.body)
    except ExpressionError as error:
        raise Fault("HTTP:REFUSED", str(error)) from None
    if result == "text":
        return text
    return {"status": reply.status, "headers": dict(reply.headers), "body": text}
