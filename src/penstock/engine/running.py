"""A pipeline that runs: start it, look at it, stop it. It is started again when it fails."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from threading import Event, Thread

from penstock.config.logs import event_logger
from penstock.engine.attempt import Attempt
from penstock.engine.batches import OnBatch
from penstock.engine.moving import MovedError
from penstock.engine.places import locked, state_folder
from penstock.engine.progress import Progress, State
from penstock.engine.reasons import failure
from penstock.engine.session import session_log
from penstock.errors import ConfigError, DataLossError, PenstockError, TransientError
from penstock.pipeline import Offsets, Pipeline

log = event_logger(__name__)
_GRACE = 300.0


def start(pipeline: Pipeline, *, once: bool = False, on_batch: OnBatch | None = None) -> Running:
    """Start a pipeline; with `once`, it ends by itself when what is there now is done.

    `on_batch` is told of each batch after its offsets are committed and before Spark notes it as done:
    if it raises, or the process dies in it, the same batch comes again, with the same mark.

    Examples
    --------
    ::

        with penstock.start(pipeline) as running:
            running.wait(timeout=60)
            print(running.progress())
    """
    return Running(pipeline, once=once, on_batch=on_batch)


class Running:
    """A started pipeline. Leaving the `with` block stops it, after the batch that is under way.

    When it fails it is started again, as its definition says: for ever while another system is away
    (state RETRYING), a limited number of times in a row after any other failure (RESTARTING). With
    `once` only a system that is away is waited for.
    """

    def __init__(
        self, pipeline: Pipeline, *, once: bool = False, on_batch: OnBatch | None = None
    ) -> None:
        self.pipeline = pipeline
        self._on_batch = on_batch
        self._once = once
        self._asked_to_stop, self._ended = Event(), Event()
        self._closed = False
        self._error: PenstockError | None = None
        self._restarts = self._in_a_row = 0
        self._lag: dict[str, int] = {}
        self._state = State.STARTING
        self._place = state_folder(pipeline)
        self._closing = ExitStack()
        try:
            self._closing.enter_context(locked(self._place, pipeline.name))
            self._attempt = self._begin(Progress(pipeline.name))
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
        """Whether the pipeline still runs."""
        return not self._ended.is_set()

    def progress(self) -> Progress:
        """Return a snapshot: state, counts, rates, lag of each partition."""
        progress = self._attempt.progress
        error = self._look_at_lag(progress) or self._error
        return replace(
            progress,
            lag=self._lag,
            state=self._seen_state(progress, error),
            restarts=self._restarts,
            last_error=str(error) if error else progress.last_error,
        )

    def _look_at_lag(self, progress: Progress) -> PenstockError | None:
        """Ask how far behind the pipeline is; a broker that does not answer is told as it is.

        Spark itself waits for minutes before it complains.
        """
        if self._closed:
            return None
        try:
            self._lag = progress.behind(self._attempt.ends(progress.position)).lag
        except TransientError as away:
            return away
        except PenstockError:
            return None
        return None

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
        self._ended.wait(grace)
        self.progress()  # the last look at the lag, while there is a connection
        self._closed = True
        self._attempt.close()
        self._closing.close()

    def _begin(self, progress: Progress, seen: Offsets | None = None) -> Attempt:
        return Attempt(
            self.pipeline,
            self._place,
            progress,
            once=self._once,
            on_batch=self._on_batch,
            seen=seen,
        )

    def _supervise(self) -> None:
        """Wait for each attempt's end, in a thread of its own: Ctrl-C must not cut Java short."""
        try:
            while True:
                before = self._attempt.progress.batches
                self._attempt.wait()
                error = self._attempt.error()
                if self._attempt.progress.batches > before:
                    self._in_a_row = 0
                if error is None or not self._again(error):
                    if self._asked_to_stop.is_set():
                        self._error = None
                    return
        finally:
            self._ended.set()

    def _again(self, error: PenstockError) -> bool:
        """Wait and start again, until that works or is not allowed any more; say whether it did."""
        while self._may_try_again(error):
            self._in_a_row += 1
            moved = isinstance(error, MovedError) and self._in_a_row == 1
            wait = 0.0 if moved else self.pipeline.restart.after(self._in_a_row)
            if not moved:
                self._note(error, wait)
            if self._asked_to_stop.wait(wait):
                return False
            try:
                self._replace_attempt()
            except PenstockError as found:
                error = found
            except Exception as found:  # Java's or Spark's: a reason like any other
                error = failure(found, self.pipeline.name, session_log())
            else:
                self._restarts += not moved
                self._error = None
                self._state = State.RUNNING
                return True
        self._error = error
        return False

    def _may_try_again(self, error: PenstockError) -> bool:
        if self._asked_to_stop.is_set() or isinstance(error, (ConfigError, DataLossError)):
            return False
        if isinstance(error, TransientError):
            return True
        return not self._once and self._in_a_row < self.pipeline.restart.limit

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
        old = self._attempt
        self._attempt = self._begin(old.progress, old.ends_for_the_next())
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
        return State.RUNNING if progress.batches else State.STARTING
