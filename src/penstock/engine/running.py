"""A pipeline that runs: start it, look at it, stop it. It is started again when it fails."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from threading import Event, Thread

from py4j.protocol import Py4JError

from penstock.config.logs import event_logger
from penstock.engine.attempt import Attempt
from penstock.engine.bindings import Bindings
from penstock.engine.lag import LagMonitor
from penstock.engine.loop import BeforeBatch, GoesElsewhere, Hooks, OnBatch
from penstock.engine.progress import Progress, State
from penstock.engine.restart_reason import most_failures, restart_reason
from penstock.engine.session import lost_session
from penstock.engine.state_dir import locked, state_folder
from penstock.engine.topic_watcher import MovedError
from penstock.engine.tracing import batch_tracer
from penstock.errors import (
    ConfigError,
    DataLossError,
    FencedError,
    PenstockError,
    SchemaChangedError,
    TransientError,
)
from penstock.pipeline import Offsets, Pipeline
from penstock.pipeline.definition import Restart

log = event_logger(__name__)
_GRACE = 300.0
_LONGEST_ASKED = 86_400.0
# What the end of Spark's query may take, beyond the batch that is under way.
_ENDING = 10.0


def start(
    pipeline: Pipeline,
    *,
    once: bool = False,
    on_batch: OnBatch | None = None,
    before_batch: BeforeBatch | None = None,
    token: int | None = None,
    goes_elsewhere: GoesElsewhere | None = None,
) -> Running:
    """Start a pipeline; with `once`, process the current backlog, then end.

    `on_batch` is called for each batch after its offsets are committed and before Spark notes it as done:
    if it raises, or the process dies in it, the same batch is run again, with the same mark.
    `before_batch` is called before anything of a batch is written: if it raises, nothing is.
    `token` is that of a lease on the pipeline: sinks with marks refuse processes with a smaller one, and
    a process that has the state and is suspended is not waited for.
    `goes_elsewhere` is called when Java died under a pipeline that had worked: if it returns True, the
    pipeline ends with `JavaDiedError`, and is not restarted by this process.

    Examples
    --------
    ::

        with penstock.start(pipeline) as running:
            running.wait(timeout=60)
            print(running.progress())
    """
    hooks = Hooks(on_batch, before_batch, batch_tracer(pipeline.name), goes_elsewhere)
    return Running(pipeline, once=once, hooks=hooks, token=token)


class Running:
    """A started pipeline. Leaving the `with` block stops it, after the batch that is under way.

    When it fails it is restarted, as its definition says: without a limit while another system is
    unavailable (state RETRYING), a limited number of consecutive times after any other failure
    (RESTARTING). With `once` it is restarted only while another system is unavailable.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        once: bool = False,
        hooks: Hooks | None = None,
        token: int | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._token = token
        self._hooks = hooks or Hooks(trace=batch_tracer(pipeline.name))
        self._once = once
        self._asked_to_stop, self._ended = Event(), Event()
        self._error: PenstockError | None = None
        self._lost: FencedError | None = None
        # Since the last batch: all attempts, and those that failed with every other system there.
        self._restarts = self._in_a_row = self._failures = 0
        self._reasons: Counter[str] = Counter()
        self._state = State.STARTING
        self._place = state_folder(pipeline)
        self._bindings = Bindings()
        self._closing = ExitStack()
        self._closing.callback(self._bindings.close)
        try:
            options = pipeline.session_options
            held = locked(self._place, pipeline.name, options, self._lose, leased=token is not None)
            self._closing.enter_context(held)
            self._attempt = self._begin_at_last(Progress(pipeline.name))
            self._lag = self._monitored(self._attempt)
        except BaseException:
            self._closing.close()
            raise
        Thread(target=self._supervise, name=f"{pipeline.name}-supervisor", daemon=True).start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_active(self) -> bool:
        """Return whether the pipeline still runs."""
        return not self._ended.is_set()

    def progress(self) -> Progress:
        """Return a snapshot: state, counts, rates, lag of each partition.

        It returns at once. The lag is that of the last request to the brokers, which a thread sends every
        few seconds; `refresh_lag` waits for the next one.
        """
        self._lag.ask()
        return self._snapshot()

    def refresh_lag(self, timeout: float = 10.0) -> Progress:
        """Return a snapshot with the lag of this moment: ask the brokers, and wait for their answer."""
        self._lag.refresh(timeout)
        return self._snapshot()

    def _snapshot(self) -> Progress:
        progress = self._attempt.progress.behind(self._lag.ends)
        # Spark itself waits for minutes before it reports a broker that does not answer.
        error = (self._lag.unavailable if self.is_active else None) or self._error
        return replace(
            progress,
            state=self._seen_state(progress, error),
            restarts=self._restarts,
            restart_reasons=dict(self._reasons),
            last_error=str(error) if error else progress.last_error,
        )

    def _monitored(self, first: Attempt) -> LagMonitor:
        try:
            connection = self.pipeline.find_connection()
            monitor = LagMonitor(
                self.pipeline.source, connection, lambda: self._attempt.progress.position
            )
            self._closing.callback(monitor.close)
            monitor.refresh()
        except BaseException:  # Ctrl-C, say
            first.stop(0.0)
            first.close()
            raise
        return monitor

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the pipeline ends, at most `timeout` seconds; say whether it has ended.

        Raises
        ------
        PipelineFailedError
            When it ended because of an error.
        """
        if not self._ended.wait(timeout):
            return False
        if self._error:
            raise self._error
        return True

    def stop(self, grace: float = _GRACE) -> None:
        """Stop after the batch that is under way, which is finished and committed."""
        if self._asked_to_stop.is_set():
            return
        self._asked_to_stop.set()
        self._attempt.stop(grace)
        self._ended.wait(max(grace, _ENDING))
        self._attempt.close()
        self._closing.close()

    def _begin(self, progress: Progress, seen: Offsets | None = None, held: int = -1) -> Attempt:
        attempt = Attempt(
            self.pipeline,
            self._place,
            progress,
            self._hooks,
            self._bindings,
            once=self._once,
            seen=seen,
            held=held,
            token=self._token,
        )
        attempt.begin()
        return attempt

    def _begin_at_last(self, progress: Progress) -> Attempt:
        """Make the first attempt. What is wrong with the definition, or away, is raised at once.

        A failure of Java is not: it is tried again, as later, a limited number of times.
        """
        while True:
            try:
                attempt = self._begin(progress)
            except (Py4JError, ConnectionError) as raised:
                error = lost_session(raised, self.pipeline.name)
            else:
                self._error, self._in_a_row, self._failures = None, 0, 0
                return attempt
            if not self._may_try_again(error):
                raise error
            self._reasons[restart_reason(error).value] += 1
            self._in_a_row += 1
            self._failures += 1
            wait = pause_before(self._in_a_row, error, self.pipeline.restart)
            self._note(error, wait)
            time.sleep(wait)

    def _lose(self, lost: FencedError) -> None:
        """End at once: another process took the state over and runs the pipeline now."""
        self._lost = lost
        if attempt := getattr(self, "_attempt", None):
            attempt.stop(0)

    def _supervise(self) -> None:
        """Wait for each attempt's end, in a thread of its own: Ctrl-C must not cut Java short."""
        try:
            while True:
                if self._lost:  # while the attempt was made
                    self._attempt.stop(0)
                before = self._attempt.progress.batches
                self._attempt.wait()
                error = self._lost or self._attempt.error()
                if self._attempt.progress.batches > before:
                    self._in_a_row = self._failures = 0
                if error is None or not self._again(error):
                    if self._asked_to_stop.is_set():
                        self._error = None
                    return
        finally:
            if self._lag.unavailable is None:
                self._lag.refresh()
            self._ended.set()

    def _again(self, error: PenstockError) -> bool:
        """Wait and start again, until that works or is not allowed any more; say whether it did."""
        if self._has_worked() and self._hooks.ends_with(error):
            self._error = error
            return False
        if self._may_try_again(error):
            self._reasons[restart_reason(error).value] += 1
        while self._may_try_again(error):
            self._in_a_row += 1
            self._failures += not isinstance(error, TransientError)
            moved = isinstance(error, (MovedError, SchemaChangedError)) and self._in_a_row == 1
            wait = 0.0 if moved else pause_before(self._in_a_row, error, self.pipeline.restart)
            if not moved:
                self._note(error, wait)
            if self._asked_to_stop.wait(wait):
                return False
            try:
                self._replace_attempt()
            except PenstockError as raised:
                error = raised
            except Exception as raised:  # Java's or Spark's: a reason like any other
                error = lost_session(raised, self.pipeline.name)
            else:
                self._restarts += not moved
                self._error = None
                self._state = State.RUNNING
                return True
        self._error = error
        return False

    def _has_worked(self) -> bool:
        """Return whether there was a batch, and no failure since: what failed is not the pipeline."""
        return bool(self._attempt.progress.batches) and not self._failures

    def _may_try_again(self, error: PenstockError) -> bool:
        if self._asked_to_stop.is_set() or isinstance(
            error, (ConfigError, DataLossError, FencedError)
        ):
            return False
        if isinstance(error, TransientError):
            return True
        return not self._once and self._failures < most_failures(error, self.pipeline.restart)

    def _note(self, error: PenstockError, wait: float) -> None:
        away = isinstance(error, TransientError)
        self._error, self._state = error, State.RETRYING if away else State.RESTARTING
        log.warning(
            "pipeline_waits",
            pipeline=self.pipeline.name,
            state=self._state.value,
            seconds=wait,
            failures_in_a_row=self._in_a_row,
            reason=str(error),
        )

    def _replace_attempt(self) -> None:
        if self._lost:
            raise self._lost
        old = self._attempt
        self._attempt = self._begin(old.progress, old.ends_for_the_next(), old.held)
        old.close()
        if self._asked_to_stop.is_set():  # while it was made: `stop` may have seen the old one
            self._attempt.stop(_GRACE)

    def _seen_state(self, progress: Progress, error: PenstockError | None) -> State:
        if not self.is_active:
            return State.FAILED if self._error else State.STOPPED
        if self._asked_to_stop.is_set():
            return State.STOPPING
        if error:
            return self._state if self._error else State.RETRYING
        return State.RUNNING if progress.has_written else State.STARTING


def pause_before(failures: int, error: PenstockError, restart: Restart) -> float:
    """Return how long to wait: what the definition says, and at least what the error asks for.

    No more than a day for the latter: it is a server's number, which may be of any size.
    """
    asked = error.retry_after if isinstance(error, TransientError) else 0.0
    return max(min(asked, _LONGEST_ASKED), restart.after(failures))
