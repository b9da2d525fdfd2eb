"""An import that runs: start it, look at it, stop it. It is started again when it fails.

Where a pipeline is behind the import, both are one thing to look at and to stop.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from penstock import engine
from penstock.config.logs import event_logger
from penstock.engine import Done, Progress, Running, State
from penstock.engine.loop import BeforeBatch, GoesElsewhere, Hooks, OnBatch
from penstock.engine.restart_reason import most_failures, restart_reason
from penstock.engine.running import pause_before
from penstock.engine.session import lost_session, spark_session
from penstock.engine.shipping import shipped
from penstock.errors import ConfigError, FencedError, PenstockError, TransientError
from penstock.imports.import_plan import ImportPlan, import_plan
from penstock.imports.intake import Intake
from penstock.imports.listening import Listening
from penstock.imports.round_report import RoundReport
from penstock.imports.rounds import Round, Rounds
from penstock.imports.unprocessed import require_processed
from penstock.pipeline import Mark, Pipeline
from penstock.pipeline.importing import ListeningImport, UnreadableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = event_logger(__name__)
_GRACE = 300.0


def start(
    pipeline: Pipeline,
    *,
    once: bool = False,
    on_batch: OnBatch | None = None,
    before_batch: BeforeBatch | None = None,
    token: int | None = None,
    goes_elsewhere: GoesElsewhere | None = None,
) -> Running | ImportRunning:
    """Start a pipeline, whatever its source; with `once`, process the current backlog, then end.

    `on_batch` is called for the batches that are read from Kafka, or, where an import has no pipeline
    after it, for its rounds: those of a process that is killed before the call are not reported again.
    `before_batch` is called before both; `token` and `goes_elsewhere` are what `penstock.engine.start`
    says.
    """
    begin = partial(
        engine.start,
        on_batch=on_batch,
        before_batch=before_batch,
        token=token,
        goes_elsewhere=goes_elsewhere,
    )
    plan = import_plan(pipeline)
    if plan is None:
        return begin(pipeline, once=once)
    if plan.behind is None:
        require_processed(pipeline)
    report = RoundReport(on_batch if plan.behind is None else None, token)
    hooks = Hooks(report.add, before_batch, goes_elsewhere=goes_elsewhere)
    return ImportRunning(pipeline, plan, begin, once, hooks)


class ImportRunning:
    """A started import, and the pipeline behind it. Leaving the `with` block stops both."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: ImportPlan,
        begin: Callable[..., Running] = engine.start,
        once: bool = False,
        hooks: Hooks | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._hooks = hooks or Hooks()
        self._plan = plan
        self._once = once
        # Starts the pipeline behind the import.
        self._start = begin
        self._asked_to_stop, self._ended = Event(), Event()
        self._error: PenstockError | None = None
        self._in_a_row = self._failures = 0
        self._reasons: Counter[str] = Counter()
        self._progress = Progress(pipeline.name)
        self._behind: Running | None = None
        self._connection = pipeline.find_connection()
        # What is wrong with the definition is raised here, and what is away the first time, too.
        self._spark: SparkSession | None = None
        if once and isinstance(plan.source, ListeningImport):
            raise ConfigError(
                f"the source {plan.source.name!r} waits for what others send, and has no backlog to "
                "process: start it without 'once'"
            )
        self._intake = Intake(plan, self._connection)
        self._rounds = self._opened(plan)
        self._system = plan.source.system_for(pipeline.name, self._connection)
        try:
            self._rounds.prepare()
            # Before the claim: a second process that is refused must not end the first one.
            if plan.behind is not None and not once:
                self._behind = self._start(plan.behind)
            self._rounds.claim()
        except BaseException:
            self._close()
            raise
        Thread(target=self._supervise, name=f"{pipeline.name}-import", daemon=True).start()

    def _opened(self, plan: ImportPlan) -> Rounds | Listening:
        """Return what imports: rounds on Spark, or a listener of this process, which needs no Spark."""
        if not isinstance(plan.source, ListeningImport):
            self._begin_session()
            return Rounds(self.pipeline.name, plan, self._connection, self._session)
        return Listening(plan, plan.source, self._connection, lambda: self._intake.was_full)

    def _begin_session(self) -> None:
        """Get Spark's session; Java that dies meanwhile is no reason to fail, as it is not later."""
        while True:
            try:
                self._session()
            except (Py4JError, ConnectionError) as raised:
                error = lost_session(raised, self.pipeline.name)
                if (wait := self._after(error)) is None:
                    raise error from raised
                time.sleep(wait)
            else:
                self._error, self._in_a_row, self._failures = None, 0, 0
                return

    def __enter__(self) -> ImportRunning:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_active(self) -> bool:
        """Return whether it still runs."""
        return not self._ended.is_set()

    def progress(self) -> Progress:
        """Return a snapshot: state, counts, rates; of the rows behind the import where there are any."""
        own = replace(
            self._progress,
            state=self._seen_state(),
            last_error=str(self._error) if self._error else self._progress.last_error,
            restart_reasons=dict(self._reasons),
        )
        if self._behind is None:
            return own
        behind = self._behind.progress()
        troubled = self._error is not None or not self.is_active
        return replace(
            behind,
            state=own.state if troubled or self._asked_to_stop.is_set() else behind.state,
            failed=behind.failed + own.failed,
            restarts=behind.restarts + own.restarts,
            last_error=own.last_error or behind.last_error,
            restart_reasons=dict(Counter(own.restart_reasons) + Counter(behind.restart_reasons)),
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it ends, at most `timeout` seconds; say whether it has ended.

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
        """Stop after the round that is under way; what the tasks have taken is committed."""
        self._asked_to_stop.set()
        self._ended.wait(grace)

    # -- the thread

    def _supervise(self) -> None:
        """Run rounds until it is stopped, has failed for good, or, with `once`, nothing is left."""
        try:
            while not self._asked_to_stop.is_set():
                if self._behind is not None and self._behind.wait(0):
                    break
                if (again := self._one_round()) is None:
                    break
                self._asked_to_stop.wait(again)
            if self._once and self._error is None and self._plan.behind is not None:
                self._finish_behind(self._plan.behind)
        except PenstockError as error:
            self._error = error
        except Exception as error:  # whatever it is, it must not look like a success
            self._error = lost_session(error, self.pipeline.name)
        finally:
            try:
                self._close()
            except Exception as error:  # of a driver, whose connection is broken
                log.warning("import_not_closed", pipeline=self.pipeline.name, reason=str(error))
            if self._asked_to_stop.is_set():
                self._error = None
            self._ended.set()

    def _one_round(self) -> float | None:
        """Run a round; return how long to wait before the next one, None where there is none."""
        try:
            done = self._run_round()
        except PenstockError as error:
            return self._after(error)
        except Exception as error:  # Java's, Spark's or a driver's: a reason like any other
            return self._after(lost_session(error, self.pipeline.name))
        self._error, self._in_a_row, self._failures = None, 0, 0
        if done.has_more:
            return 0.0
        return None if self._once else self._plan.source.poll

    def _run_round(self) -> Round:
        """Run a round, unless too much of what was imported is not processed yet."""
        if self._hooks.before_batch:
            self._hooks.before_batch()
        self._intake.trim()
        waits = self._rounds.waits_when_full and not self._once
        if waits and self._intake.is_full():
            return Round()
        began = time.monotonic()
        done = self._rounds.run(self._system)
        seconds = time.monotonic() - began
        self._count(done, seconds)
        if done.transactions and self._hooks.on_batch:
            self._hooks.on_batch(_as_batch(done, seconds))
        if done.error:
            raise done.error
        return done

    def _count(self, done: Round, seconds: float) -> None:
        before = self._progress
        idle = not done.transactions
        self._progress = replace(
            before,
            batches=before.batches + done.transactions,
            records=before.records + done.records + done.failed,
            rows=before.rows + done.records,
            failed=before.failed + done.failed,
            rows_per_second=before.rows_per_second if idle else done.records / seconds,
            last_batch_seconds=before.last_batch_seconds if idle else seconds,
            last_batch_at=before.last_batch_at if idle else time.time(),
            last_error=done.last_failure or before.last_error,
        )
        if done.records:
            self._in_a_row = self._failures = 0

    def _after(self, error: PenstockError) -> float | None:
        """Note an error; return how long to wait before it is tried again, None where it is not."""
        self._error = error
        if isinstance(error, (ConfigError, FencedError)):
            return None
        if self._progress.batches and not self._failures and self._hooks.ends_with(error):
            return None
        away = isinstance(error, TransientError)
        if self._once and isinstance(error, UnreadableError):
            return None
        most = most_failures(error, self.pipeline.restart)
        if not away and (self._once or self._failures >= most):
            return None
        self._in_a_row += 1
        self._failures += not away
        if not away or self._in_a_row == 1:  # waiting for one outage is one reason
            self._reasons[restart_reason(error).value] += 1
        wait = pause_before(self._in_a_row, error, self.pipeline.restart)
        self._progress = replace(self._progress, restarts=self._progress.restarts + (not away))
        log.warning(
            "import_waits",
            pipeline=self.pipeline.name,
            seconds=wait,
            failures_in_a_row=self._in_a_row,
            reason=str(error),
        )
        return wait

    def _session(self) -> SparkSession:
        """Return Spark's session; one that is new gets what tasks need."""
        spark = spark_session(self.pipeline.session_options)
        if spark is not self._spark:
            shipped(spark, self.pipeline)
            self._spark = spark
        return spark

    def _finish_behind(self, behind: Pipeline) -> None:
        """Let the pipeline behind the import process what was imported."""
        self._behind = self._start(behind, once=True)
        while not self._behind.wait(0.5) and not self._asked_to_stop.is_set():
            pass

    def _close(self) -> None:
        """Close everything, also where closing some of it fails: the pipeline behind must not run on."""
        with ExitStack() as closing:
            if self._behind is not None:
                closing.callback(self._behind.stop)
            closing.callback(self._intake.close)
            closing.callback(self._rounds.close)
            closing.callback(self._system.close)

    def _seen_state(self) -> State:
        if not self.is_active:
            return State.FAILED if self._error else State.STOPPED
        if self._asked_to_stop.is_set():
            return State.STOPPING
        if self._error:
            away = isinstance(self._error, TransientError)
            return State.RETRYING if away else State.RESTARTING
        begun = self._progress.batches or self._behind or self._rounds.is_ready
        return State.RUNNING if begun else State.STARTING


def _as_batch(done: Round, seconds: float) -> Done:
    """Return a round as a batch that has no mark yet."""
    read = done.records + done.failed
    return Done(Mark(0, 0, 0), read, done.records, done.failed, seconds, error=done.last_failure)
