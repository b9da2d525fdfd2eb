"""Connectors as deployments: found for a caller, stored, and asked to do something else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

from penstock.connect.common_keys import CONNECTOR_CLASS, NAME
from penstock.connect.connector_class import Catalog, ConnectorClass, UnknownClassError
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import FREE, DeploymentRow, Desired, Kind, RunRow
from penstock.server.caller import require
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.connect.stored_name import is_possible, stored_name

NOT_THERE: dict[str, str] = {
    "": "Connector {name} not found",
    "status": "No status found for connector {name}",
    "state": "Unknown connector {name}",
    "restart": "Unknown connector: {name}",
}
"""How Connect words it that there is no such connector, by what was asked of it."""
# How many configurations are cached, and how long one may be.
_MOST, _LONGEST = 2000, 20_000
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


@dataclass(frozen=True)
class Connector:
    """A connector that exists, with its configuration as people may see it."""

    row: DeploymentRow
    config: dict[str, str]
    kind: type[ConnectorClass]

    @property
    def name(self) -> str:
        """Return its name."""
        return self.config.get(NAME) or self.row.name

    @property
    def parsed(self) -> ConnectorConfig:
        """Return its configuration with the keys of its class."""
        return ConnectorConfig(self.config, self.kind.definition())


class ShownConfigs:
    """The configurations that were shown last: a list of connectors is asked for again and again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], dict[str, str]] = {}

    def config(self, store: ControlStore, row: DeploymentRow) -> dict[str, str]:
        """Return a configuration as people may see it."""
        key = (row.name, blake2b(row.spec.encode()).digest())
        found = self._known.get(key)
        if found is None:
            found = json.loads(store.secrets.shown(row.name, row.spec))
            if len(self._known) >= _MOST:
                self._known.clear()
            if len(row.spec) <= _LONGEST:
                self._known[key] = found
        return dict(found)


@dataclass(frozen=True)
class ConnectorStore:
    """The connectors of the store, as one caller may see and change them."""

    store: ControlStore
    access: Access
    catalog: Catalog
    defaults: WorkerDefaults = field(default_factory=WorkerDefaults)
    shown: ShownConfigs = field(default_factory=ShownConfigs)

    def all(self) -> list[Connector]:
        """Return all connectors that the caller may see."""
        rows = self.store.deployments.all()
        return [self._read(row) for row in rows if self._is_visible(row)]

    def find(self, name: str, asked: str = "") -> Connector:
        """Return a connector; raise in Connect's words for what was asked of it."""
        row = self.row(name)
        if row is None or not self._is_visible(row):
            raise ConnectError(404, NOT_THERE[asked].format(name=name))
        return self._read(row)

    def find_to_change(self, name: str, asked: str = "") -> Connector:
        """Return a connector that the caller may change."""
        found = self.find(name, asked)
        require(self.access, Role.OPERATOR, found.row.labels)
        return found

    def row(self, name: str) -> DeploymentRow | None:
        """Return what has the name: pipelines and jobs have names from the same list."""
        return self.store.deployments.get(stored_name(name)) if is_possible(name) else None

    def put(
        self,
        name: str,
        config: Mapping[str, str],
        before: DeploymentRow | None,
        desired: Desired | None = None,
    ) -> Connector:
        """Store a configuration, which was checked; raise ChangedError unless `before` still holds."""
        labels = before.labels if before else {}
        require(self.access, Role.OPERATOR, labels)
        stored = stored_name(name)
        text = _as_text(config)
        sealed = self.store.secrets.sealed(stored, text, before.spec if before else None)
        with self.store.change():
            row = self.store.deployments.put(
                stored,
                Kind.CONNECTOR,
                sealed,
                by=self.access.user,
                labels=labels,
                desired=desired,
                expected=before.revision if before else 0,
            )
            self._audit("put", row)
        return self._read(row)

    def set_desired(self, connector: Connector, desired: Desired) -> None:
        """Ask for another state."""
        if connector.row.desired is desired:
            return
        with self.store.change():
            name, by = connector.row.name, self.access.user
            row = self.store.deployments.set_desired(name, desired, by=by)
            self._audit(desired.value, row)

    def restart(self, connector: Connector) -> None:
        """Ask for a restart."""
        with self.store.change():
            row = self.store.deployments.restart(connector.row.name, by=self.access.user)
            self._audit("restart", row)

    def run(self, connector: Connector) -> RunRow:
        """Return what is known of its execution."""
        return self.store.leases.get(connector.row.name) or RunRow(connector.row.name)

    def runs(self) -> dict[str, RunRow]:
        """Return what is known of all executions, by the names of their deployments."""
        return {run.deployment: run for run in self.store.leases.all()}

    def is_at_rest(self, connector: Connector) -> bool:
        """Return whether no worker runs it, and none will."""
        run = self.run(connector)
        held = run.worker != FREE and run.is_held(self.store.database.time())
        return connector.row.desired is Desired.STOPPED and not held

    def with_secrets(
        self, config: Mapping[str, str], before: DeploymentRow | None
    ) -> dict[str, str]:
        """Return a configuration with the stored secrets in place of their masks; nothing may show it."""
        if before is None or before.kind is not Kind.CONNECTOR:
            return dict(config)
        require(self.access, Role.OPERATOR, before.labels)
        shown = self.shown.config(self.store, before)
        opened = self.store.secrets.opened(before.name, before.spec)
        return {
            key: opened[key] if shown.get(key) == each else each for key, each in config.items()
        }

    def _is_visible(self, row: DeploymentRow) -> bool:
        return (
            row.kind is Kind.CONNECTOR
            and row.desired is not Desired.DELETED
            and self.access.allows(Role.VIEWER, row.labels)
        )

    def _read(self, row: DeploymentRow) -> Connector:
        config = self.shown.config(self.store, row)
        try:
            kind = self.catalog.find(config[CONNECTOR_CLASS])
        except UnknownClassError:
            kind = _missing(config[CONNECTOR_CLASS])
        return Connector(row, config, kind)

    def _audit(self, action: str, row: DeploymentRow) -> None:
        self.store.audit.add(
            self.access.user,
            f"connector.{action}",
            row.name,
            desired=row.desired.value,
            generation=row.generation,
        )


class _MissingClass(ConnectorClass):
    """In place of a class whose package was removed: its connectors can be seen, stopped and deleted."""

    kind: ClassVar[Any] = "unknown"

    def pipeline(self, _config: ConnectorConfig) -> dict[str, Any]:
        """Raise: nothing is known of it."""
        raise UnknownClassError(self.names[0], [])


def _missing(name: str) -> type[ConnectorClass]:
    return type("MissingClass", (_MissingClass,), {"names": (name,)})


def _as_text(config: Mapping[str, str]) -> str:
    """Return a configuration as JSON that is YAML as well: YAML does not know pairs of surrogates."""
    text = json.dumps(dict(config), indent=2)
    return _PAIR.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
