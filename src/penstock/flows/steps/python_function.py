"""The step `python`: a function of a message, with a time-out that ends the wait, not the function."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
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
            calls = _Calling(function, messages[done:])
            results = calls.results(self._step.timeout)
            for message, made in zip(messages[done:], results, strict=False):
                if isinstance(made, Fault):
                    failed.append((message, made))
                elif made is None:
                    run.ended(message, "filtered")
                else:
                    found += made
            done += calls.count
            if done < len(messages):
                failed.append((messages[done], self._timed_out(messages[done], calls.thread)))
                done += 1
        return Attempt(found, failed)

    def _timed_out(self, message: Message, thread: Thread) -> Fault:
        self._abandoned = [each for each in (*self._abandoned, thread) if each.is_alive()]
        text = f"{self._step.function.path} did not return within {self._step.timeout:g} s"
        fault = Fault("CORE:TIMEOUT", text)
        if len(self._abandoned) >= MOST_ABANDONED:
            raise FlowStoppedError(Failure(message, fault, self._path))
        return fault


class _Calling:
    """A thread that calls a function with messages; it is left alone when a call takes too long.

    It says with which message it is busy since when, so that the one who waits has nothing to do
    between two messages: to change threads for each of them would take longer than most functions.
    """

    def __init__(self, function: Callable[[Message], Any], messages: Sequence[Message]) -> None:
        self._function = function
        self._messages = messages
        self._results: list[list[Message] | Fault | None] = []
        self._lock = Lock()
        self._began = 0.0
        self._is_left = False
        self._ended = Event()
        self.thread = Thread(target=self._run, daemon=True, name="flow-python")
        # How many messages have a result.
        self.count = 0

    def results(self, timeout: float) -> list[list[Message] | Fault | None]:
        """Return the results of all messages, or of those before the one that takes too long."""
        self._began = time.monotonic()
        self.thread.start()
        left = timeout
        while not self._ended.wait(left):
            with self._lock:
                left = self._began + timeout - time.monotonic()
                if left <= 0:
                    self._is_left = True
                    break
        return self._results[: self.count]

    def _run(self) -> None:
        for message in self._messages:
            with self._lock:
                if self._is_left:
                    return
                self._began = time.monotonic()
                self.count = len(self._results)
            self._results.append(_called(self._function, message))
        with self._lock:
            if not self._is_left:
                self.count = len(self._results)
        self._ended.set()


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
                m.payload,
                m.attribute or {},
                m.variable or {},
                m.error,
                (*message.place, n),
                message.parent,
            )
            for n, m in enumerate(made)
        ]
    if isinstance(made, Message):
        return [
            Message(
                made.payload,
                made.attribute or {},
                made.variable or {},
                made.error,
                message.place,
                message.parent,
            )
        ]
    return [message.changed(payload=made)]
