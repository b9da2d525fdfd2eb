"""A job as the spec of a deployment: the definition of its pipeline, its other options, its id."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.config import resolve_references
from penstock.control.private_files import distrust
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store.rows import DeploymentRow
from penstock.control.stored_functions import by_value, deserialize
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class JobSpec:
    """What is stored of a job. Reading it loads no code."""

    definition: dict[str, Any] = field(repr=False)  # it may contain secrets
    options: dict[str, Any]
    id: str

    @classmethod
    def of(cls, row: DeploymentRow, secrets: SpecSecrets) -> JobSpec:
        """Read the spec of a deployment, with its secrets."""
        return cls(**secrets.opened_data(row.name, json.loads(row.spec)))

    @classmethod
    def readable(cls, row: DeploymentRow, secrets: SpecSecrets) -> JobSpec:
        """Read the spec for people: a secret whose key is lost is masked."""
        return cls(**secrets.readable_data(row.name, json.loads(row.spec)))

    def sealed(self, name: str, secrets: SpecSecrets) -> str:
        """Return the text to store, without secrets in the clear."""
        data = {"definition": self.definition, "options": self.options, "id": self.id}
        return json.dumps(secrets.sealed_data(name, data), indent=2)

    def require_trust(self, name: str, file: Path | None, place: str) -> None:
        """Refuse a function stored by value, unless the store is a private file.

        Such a function is code, and anyone who can write to the store chooses what it does.
        """
        if by_value(self.definition) and (reason := distrust(file)):
            raise ConfigError(
                f"the job {name!r} has a function without an import path, and the jobs are stored in "
                f"{place}: only a private file of your own may contain code, and {reason}; put the "
                "function into a module and give it as 'module:function'"
            )


def pipeline_of(definition: Mapping[str, Any], *, trusted: bool = False) -> Pipeline:
    """Return the pipeline of a stored definition; functions by value need a trusted store."""
    filled = {
        name: resolve_references(deserialize(part, trusted=trusted))
        for name, part in definition.items()
        if name != "connection"
    }
    return Pipeline(**{**definition, **filled})


def pipeline_name(job: str) -> str:
    """Return the name of a job's pipeline: the job's own, if it is valid for a pipeline.

    >>> pipeline_name("trades"), pipeline_name("test:0:get data")
    ('trades', 'test-0-get-data-3801b9')
    """
    if _NAME.fullmatch(job):
        return job
    digest = hashlib.sha256(job.encode()).hexdigest()[:6]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", job).strip("-.")[:80]
    return f"{plain or 'job'}-{digest}"
