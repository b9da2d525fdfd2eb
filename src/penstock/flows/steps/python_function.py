"""The step `python`: a function of a message, with a time-out that ends the wait, not the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from pydantic import Field

from penstock.errors import TransientError
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault, fault_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep
from penstock.flows.running.flow_run import Failure, FlowRun, FlowStoppedError
from penstock.flows.running.stages import Bind
from penstock.pipeline.values import Duration, Function

MOST_ABANDONED = 8


@step_kind
class PythonStep(FlowStep):
    """Calls a function with each message (`penstock.flows.Message`).

    It returns a message (`message.changed(payload=...)`), a list of messages, another value as the new
    payload, or None, and the message ends here. It is given a copy, which it may change.

    Python cannot end a function from outside: after `timeout` the message fails with CORE:TIMEOUT, and
    the function goes on in a thread of its own, whose result is not used. When 8 of them still run, the
    flow stops.
    """

    name = "python"
    main_option = "function"

    function: Function = Field(description="The function, as `module:function`.")
    timeout: Duration = Field(
        default=60.0, gt=0, le=86400, description="The longest time for one message."
    )

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what calls the function."""
        return _Calls(self, path)

    def summary(self) -> str:
        """Return the function's name."""
        return self.function.path


class _Calls(BoundStep):
    def __init__(self, step: PythonStep, path: str) -> None:
        self._step = step
        self._path = path
        self._abandoned: list[Thread] = []

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        """Call the function in one thread for the batch, and in another one after each time-out."""
        found: list[Message] = []
        failed: list[tuple[Message, Fault]] = []
        function = self._step.function.load()
        done = 0
        while done < len(messages):
            abandoned = Event()
            results, thread = _in_thread(function, messages[done:], abandoned)
            for message in messages[done:]:
                done += 1
                try:
                    made = results.get(timeout=self._step.timeout)
                except Empty:
                    abandoned.set()
                    failed.append((message, self._timed_out(message, thread)))
                    break
                if isinstance(made, Fault):
                    failed.append((message, made))
                elif made is None:
                    run.ended(message, "filtered")
                else:
                    found += made
        return Attempt(found, failed)

    def _timed_out(self, message: Message, thread: Thread) -> Fault:
        self._abandoned = [each for each in (*self._abandoned, thread) if each.is_alive()]
        text = f"{self._step.function.path} did not return within {self._step.timeout:g} s"
        fault = Fault("CORE:TIMEOUT", text)
        if len(self._abandoned) >= MOST_ABANDONED:
            raise FlowStoppedError(Failure(message, fault, self._path))
        return fault


def _in_thread(
    function: Callable[[Message], Any], messages: Sequence[Message], abandoned: Event
) -> tuple[SimpleQueue[Any], Thread]:
    """Return the results as they come, and the thread that calls the function."""
    results: SimpleQueue[Any] = SimpleQueue()

    def call() -> None:
        for message in messages:
            if abandoned.is_set():
                return
            results.put(_called(function, message))

    thread = Thread(target=call, daemon=True, name="flow-python")
    thread.start()
    return results, thread


def _called(function: Callable[[Message], Any], message: Message) -> list[Message] | Fault | None:
    try:
        return _messages(function(message.own()), message)
    except TransientError as error:
        return fault_of(error)
    except BaseException as error:  # the function is the user's: it may even call sys.exit
        return Fault("CORE:PYTHON", f"{type(error).__name__}: {error}")


def _messages(made: Any, message: Message) -> list[Message] | None:
    if made is None:
        return None
    if isinstance(made, list) and made and all(isinstance(each, Message) for each in made):
        return [
            Message(
                m.payload, m.attribute, m.variable, m.error, (*message.place, n), message.parent
            )
            for n, m in enumerate(made)
        ]
    if isinstance(made, Message):
        return [
            Message(
                made.payload,
                made.attribute,
                made.variable,
                made.error,
                message.place,
                message.parent,
            )
        ]
    return [message.changed(payload=made)]
