"""How a deployment is started: from its stored definition to a runnable, for each kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from penstock import imports
from penstock.config.logs import event_logger
from penstock.connect.common_keys import NAME
from penstock.connect.connectors import CATALOG
from penstock.connect.translation import definition_of
from penstock.connect.validation import validate
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.job_spec import JobSpec, pipeline_name, pipeline_of
from penstock.control.store import ControlStore
from penstock.control.store.rows import DeploymentRow, Kind, ReplayRow
from penstock.control.worker_lease import Lease
from penstock.engine import Done
from penstock.engine.loop import GoesElsewhere
from penstock.errors import ConfigError, SetupError, TransientError
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.reading import parse_flow
from penstock.flows.spark.flow_pipeline import flow_pipeline, require_partitions
from penstock.pipeline import Pipeline
from penstock.pipeline.reading import parse_pipeline
from penstock.retry import retry
from penstock.sinks.memory import MemorySink
from penstock.worker.hosted_run import Runnable
from penstock.worker.sink_topics import create_missing_topics
from penstock.worker.state_removal import remove_state

if TYPE_CHECKING:
    from penstock.engine.dead_letters import Replayed

log = event_logger(__name__)
# For how many seconds a batch waits for a store that is away, before its pipeline is started again.
_STORE_AWAY = 60.0
_TRY_EVERY = 0.2


@dataclass(frozen=True)
class Starting:
    """Starts deployments of a store in this process."""

    store: ControlStore
    # Where states are that no definition places: a folder or URI that all workers share.
    state: str | None = None
    # Whether this process is where the tables in memory of jobs are read.
    has_memory_tables: bool = False
    # What connectors get that do not say it themselves: the cluster, converters.
    connect: WorkerDefaults = field(default_factory=WorkerDefaults)

    def start(
        self, row: DeploymentRow, lease: Lease, goes_elsewhere: GoesElsewhere | None = None
    ) -> Runnable:
        """Start a deployment under a lease, whose token is the engine's.

        `goes_elsewhere` is asked when Java dies under it, as `penstock.engine.start` says.
        """
        pipeline = self.pipeline(row)
        if row.kind is Kind.CONNECTOR:
            create_missing_topics(pipeline)
        if row.kind is Kind.FLOW:
            require_partitions(self._flow(row), pipeline)

        def before_batch() -> None:
            lease.wait(_STORE_AWAY)
            lease.require()

        def on_batch(done: Done) -> None:
            # It is written and committed; the store refuses to count it if the lease was lost.
            def count() -> bool:
                return self.store.counters.count(row.name, lease.token, done)

            if retry(count, _again_if_away, within=_STORE_AWAY):
                self._note(row.name, done)

        return imports.start(
            pipeline,
            on_batch=on_batch,
            before_batch=before_batch,
            token=lease.token,
            goes_elsewhere=goes_elsewhere,
        )

    def replay(self, request: ReplayRow, repeated: bool) -> Replayed:
        """Replay dead letters of a deployment, also while it runs; return what became of them."""
        from penstock.worker.letter_replay import replay_letters  # noqa: PLC0415 - it needs Spark

        pipeline = self.pipeline(self.store.deployments.find(request.deployment))
        sealed = request.value
        secrets = self.store.secrets
        value = None if sealed is None else secrets.opened_record(request.deployment, sealed)
        return replay_letters(pipeline, request.wanted, value, repeated=repeated)

    def pipeline(self, row: DeploymentRow) -> Pipeline:
        """Return the pipeline of a deployment, with its secrets."""
        if row.kind is Kind.JOB:
            return self._job(row)
        if row.kind is Kind.CONNECTOR:
            self._warn(row)
            return self._placed(Pipeline(**self._connector(row)))
        if row.kind is Kind.FLOW:
            return self._placed(flow_pipeline(self._flow(row)))
        data = self.store.secrets.opened(row.name, row.spec)
        return self._placed(parse_pipeline(_as_yaml(data), f"the definition of {row.name!r}"))

    def _flow(self, row: DeploymentRow) -> Flow:
        data = self.store.secrets.opened(row.name, row.spec)
        return parse_flow(_as_yaml(data), f"the definition of {row.name!r}")

    def _connector(self, row: DeploymentRow) -> dict[str, Any]:
        config = self.store.secrets.opened(row.name, row.spec)
        readable = self.connect.readable(config)
        made = definition_of(pipeline_name(row.name), config[NAME], readable, CATALOG)
        return self.connect.placed(made)

    def _warn(self, row: DeploymentRow) -> None:
        """Log the keys of a connector that have no effect."""
        config = self.store.secrets.opened(row.name, row.spec)
        for key, text in validate(CATALOG, self.connect.completed(config)).warnings:
            log.warning("connector_key_unused", deployment=row.name, key=key, reason=text)

    def _job(self, row: DeploymentRow) -> Pipeline:
        spec = JobSpec.of(row, self.store.secrets)
        spec.require_trust(row.name, self.store.database.file, self.store.database.place)
        pipeline = self._placed(pipeline_of(spec.definition, trusted=True))
        if isinstance(pipeline.sink, MemorySink) and not self.has_memory_tables:
            raise ConfigError(
                f"the table of the job {row.name!r} is in the memory of the process that created it; run "
                "it there, or give it a table outside of memory"
            )
        return pipeline

    def _placed(self, pipeline: Pipeline) -> Pipeline:
        """Return a pipeline whose state is where all workers find it, unless it has a place."""
        if pipeline.state is None and self.state is not None:
            pipeline = pipeline.model_copy(update={"state": self.state})
        return pipeline

    def clean(self, row: DeploymentRow) -> None:
        """Remove the state of a deployment that is deleted; its tables and offsets are kept.

        Where its place is not known, as after a variable or a key was removed, or cannot be written,
        the state stays.
        """
        try:
            data = self._placing(row)
            if isinstance(data, dict) and "name" in data:
                remove_state({"state": self.state, **data})
        except (ConfigError, SetupError, OSError) as error:
            log.warning("state_not_removed", deployment=row.name, reason=str(error))

    def _placing(self, row: DeploymentRow) -> Any:
        """Return what has the name and the place of a deployment's state."""
        if row.kind is Kind.JOB:
            return JobSpec.of(row, self.store.secrets).definition
        if row.kind is Kind.CONNECTOR:
            return {"name": pipeline_name(row.name)}  # references in it may have no value any more
        return self.store.secrets.opened(row.name, row.spec)

    def _note(self, name: str, done: Done) -> None:
        """Write an event about records that failed or were lost."""
        counts = {"failed": done.failed, "lost": done.lost}
        for kind, count in counts.items():
            if count:
                try:
                    text = f"{count} records {kind}: {done.error}"
                    self.store.events.add(name, f"records_{kind}", text)
                except TransientError as error:  # they are counted, and the batch is done
                    log.warning("event_not_stored", deployment=name, reason=str(error))


def _again_if_away(error: Exception) -> float | None:
    return _TRY_EVERY if isinstance(error, TransientError) else None


def _as_yaml(data: Any) -> str:
    text: str = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    return text
