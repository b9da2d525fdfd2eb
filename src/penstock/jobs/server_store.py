"""Jobs that workers of a server run: deployed through its API, from definitions without code."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import yaml

from penstock.api_client.server_address import find_credentials, find_server
from penstock.api_client.server_client import ServerClient, in_path
from penstock.control.job_spec import JobSpec
from penstock.control.store.rows import Desired
from penstock.control.stored_functions import by_value, serialize, shown
from penstock.errors import ConfigError, NotFoundError
from penstock.jobs.job_definition import Description, same_place
from penstock.jobs.job_row import JobRow

# A sample is stored every ten seconds; clocks of two machines differ.
_RECENT = 300.0


class ServerStore:
    """The deployments of a server, as the jobs of this process see them."""

    def __init__(self, server: str) -> None:
        address = find_server(server)
        self.place = address.url
        self._client = ServerClient(address, find_credentials(address))
        self._specs: dict[str, JobSpec] = {}

    def put(self, description: Description) -> str:
        """Deploy a job, or change one that reads the same topics into the same table.

        Raises
        ------
        ConfigError
            When workers could not run it: a function has no import path, or the table is in the
            memory of this process.
        """
        data = serialize(description.definition)
        name = str(data["name"])
        _refuse_code(name, data)
        _refuse_memory(name, data)
        definition = shown(data)
        before = self._found(name)
        if before is not None and not same_place(yaml.safe_load(before["definition"]), definition):
            raise ConfigError(
                f"the server {self.place} has a deployment {name!r} that reads other topics or fills "
                "another table; delete it, or choose another name"
            )
        condition = {"If-Match": f'"{before["revision"]}"'} if before else {"If-None-Match": "*"}
        text = yaml.safe_dump(definition, sort_keys=False, allow_unicode=True)
        body = {"definition": text, "desired": Desired.RUNNING.value}
        self._client.send("PUT", _path(name), body, headers=condition)
        self._specs[name] = JobSpec(data, description.options, name)
        return name

    def get(self, name: str) -> JobRow | None:
        """Return the job of this name."""
        found = self._found(name)
        if found is None:
            return None
        run, counts, spec = found["run"], found["counters"], self._specs.get(name)
        since = time.time() - _RECENT
        points = self._client.get(f"{_path(name)}/samples", since=since)["points"]
        return JobRow(
            name, spec.id if spec else name, found["created_by"], found["created"],
            spec.definition if spec else {}, spec.options if spec else {}, Desired(found["desired"]),
            counts["batches"], counts["records"], counts["rows"], counts["failed"],
            run["error"] or counts["last_error"], run["failed"] or counts["last_failed"],
            counts["last_batch"], counts["rate"], points[-1]["lag"] if points else 0,
            run["state"], run["worker"] or "", run["held"],
        )  # fmt: skip

    def spec(self, name: str) -> JobSpec | None:
        """Return the definition that this process gave; the server shows no secrets."""
        return self._specs.get(name)

    def require_trust(self, _name: str, _spec: JobSpec) -> None:
        """Accept every definition of this process: it contains no code."""

    def start(self, name: str, _job: Any = None) -> None:
        """Ask for the job to run."""
        self._client.send("POST", f"{_path(name)}/resume")

    def run_of(self, _name: str) -> None:
        """Return no run: the job runs in a worker of the server."""

    def stop(self, name: str) -> None:
        """Ask for the job to stop after its batch."""
        self._client.send("POST", f"{_path(name)}/stop")

    def end(self, name: str) -> None:
        """Ask for the end of the job."""
        self._client.send("DELETE", _path(name))

    def _found(self, name: str) -> Any:
        try:
            return self._client.get(_path(name))
        except NotFoundError:
            return None


def _path(name: str) -> str:
    return f"/deployments/{in_path(name)}"


def _refuse_code(name: str, data: Mapping[str, Any]) -> None:
    if by_value(data):
        raise ConfigError(
            f"the job {name!r} has a function without an import path, and a server takes no code: put it "
            "into a module that the workers can import, and give it as 'module:function'"
        )


def _refuse_memory(name: str, data: Mapping[str, Any]) -> None:
    sink = data["sink"]
    if isinstance(sink, str) or "memory" in sink:
        raise ConfigError(
            f"the table of the job {name!r} is in the memory of this process, and the job would run in a "
            "worker of the server; give a table outside of memory, as {'delta': 'lake/trades'}"
        )
