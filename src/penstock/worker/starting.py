"""How a deployment is started: from its stored definition to a runnable, for each kind."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from penstock import imports
from penstock.control.store import ControlStore
from penstock.control.store.rows import DeploymentRow, Kind
from penstock.control.worker_lease import Lease
from penstock.engine import Done
from penstock.errors import ConfigError
from penstock.jobs.job_definition import remove_state
from penstock.pipeline import Pipeline
from penstock.pipeline.reading import parse_pipeline
from penstock.worker.hosted_run import Runnable


@dataclass(frozen=True)
class Starting:
    """Starts deployments of a store in this process."""

    store: ControlStore
    # Where states are that no definition places: a folder or URI that all workers share.
    state: str | None = None

    def start(self, row: DeploymentRow, lease: Lease) -> Runnable:
        """Start a deployment under a lease, whose token is the engine's."""
        pipeline = self.pipeline(row)

        def before_batch() -> None:
            lease.require()

        def on_batch(done: Done) -> None:
            self.store.counters.count(row.name, lease.token, done)

        return imports.start(
            pipeline, on_batch=on_batch, before_batch=before_batch, token=lease.token
        )

    def pipeline(self, row: DeploymentRow) -> Pipeline:
        """Return the pipeline of a deployment, with its secrets."""
        if row.kind is not Kind.PIPELINE:
            raise ConfigError(
                f"{row.name!r} is a {row.kind.value}; this worker runs deployments of the kind pipeline"
            )
        data = self.store.secrets.opened(row.name, row.spec)
        text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
        pipeline = parse_pipeline(text, f"the definition of {row.name!r}")
        if pipeline.state is None and self.state is not None:
            pipeline = pipeline.model_copy(update={"state": self.state})
        return pipeline

    def clean(self, row: DeploymentRow) -> None:
        """Remove the state of a deployment that is deleted; its tables and offsets are kept."""
        data = self.store.secrets.opened(row.name, row.spec)
        if isinstance(data, dict) and "name" in data:
            remove_state({"state": self.state, **data})
