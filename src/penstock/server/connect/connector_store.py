"""Connectors as deployments: found for a caller, stored, and asked to do something else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.connector_class import Catalog, ConnectorClass
from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import FREE, DeploymentRow, Desired, Kind, RunRow
from penstock.server.caller import require
from penstock.server.connect.connect_errors import ConnectError

NOT_THERE: dict[str, str] = {
    "": "Connector {name} not found",
    "status": "No status found for connector {name}",
    "state": "Unknown connector {name}",
    "restart": "Unknown connector: {name}",
}
"""How Connect words it that there is no such connector, by what was asked of it."""


@dataclass(frozen=True)
class Connector:
    """A connector that exists, with its configuration as people may see it."""

    row: DeploymentRow
    config: dict[str, str]
    kind: type[ConnectorClass]

    @property
    def name(self) -> str:
        """Return its name."""
        return self.row.name


@dataclass(frozen=True)
class ConnectorStore:
    """The connectors of the store, as one caller may see and change them."""

    store: ControlStore
    access: Access
    catalog: Catalog

    def all(self) -> list[Connector]:
        """Return all connectors that the caller may see."""
        rows = self.store.deployments.all()
        return [self._read(row) for row in rows if self._is_visible(row)]

    def find(self, name: str, asked: str = "") -> Connector:
        """Return a connector; raise in Connect's words for what was asked of it."""
        row = self.store.deployments.get(name) if name.isprintable() else None
        if row is None or not self._is_visible(row):
            raise ConnectError(404, NOT_THERE[asked].format(name=name))
        return self._read(row)

    def find_to_change(self, name: str, asked: str = "") -> Connector:
        """Return a connector that the caller may change."""
        found = self.find(name, asked)
        require(self.access, Role.OPERATOR, found.row.labels)
        return found

    def exists(self, name: str) -> bool:
        """Return whether a deployment has the name: pipelines and jobs have names from the same list."""
        row = self.store.deployments.get(name) if name.isprintable() else None
        return row is not None

    def put(
        self, name: str, config: Mapping[str, str], desired: Desired | None = None
    ) -> Connector:
        """Store a configuration, which was checked."""
        before = self.store.deployments.get(name)
        labels = before.labels if before else {}
        require(self.access, Role.OPERATOR, labels)
        text = json.dumps(dict(config), indent=2)
        sealed = self.store.secrets.sealed(name, text, before.spec if before else None)
        with self.store.change():
            row = self.store.deployments.put(
                name,
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
            row = self.store.deployments.set_desired(connector.name, desired, by=self.access.user)
            self._audit(desired.value, row)

    def restart(self, connector: Connector) -> None:
        """Ask for a restart."""
        with self.store.change():
            row = self.store.deployments.restart(connector.name, by=self.access.user)
            self._audit("restart", row)

    def run(self, connector: Connector) -> RunRow:
        """Return what is known of its execution."""
        return self.store.leases.get(connector.name) or RunRow(connector.name)

    def is_at_rest(self, connector: Connector) -> bool:
        """Return whether no worker runs it, and none will."""
        run = self.run(connector)
        held = run.worker != FREE and run.is_held(self.store.database.time())
        return connector.row.desired is Desired.STOPPED and not held

    def secret_config(self, connector: Connector) -> dict[str, str]:
        """Return the configuration with its secrets; nothing may show it."""
        return dict(self.store.secrets.opened(connector.name, connector.row.spec))

    def _is_visible(self, row: DeploymentRow) -> bool:
        return (
            row.kind is Kind.CONNECTOR
            and row.desired is not Desired.DELETED
            and self.access.allows(Role.VIEWER, row.labels)
        )

    def _read(self, row: DeploymentRow) -> Connector:
        shown: Any = json.loads(self.store.secrets.shown(row.name, row.spec))
        return Connector(row, shown, self.catalog.find(shown["connector.class"]))

    def _audit(self, action: str, row: DeploymentRow) -> None:
        self.store.audit.add(
            self.access.user,
            f"connector.{action}",
            row.name,
            desired=row.desired.value,
            generation=row.generation,
        )
