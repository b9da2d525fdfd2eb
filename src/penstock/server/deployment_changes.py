"""Changes of deployments: checked, allowed, stored and written to the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.deployments import ChangedError
from penstock.control.store.rows import DeploymentRow, Desired
from penstock.server.caller import require
from penstock.server.conditions import Condition
from penstock.server.definition_check import Checked, checked_definition
from penstock.server.deployment_access import find_for, is_name, not_found
from penstock.server.given_definition import GivenDefinition
from penstock.server.settings import ServerSettings
from penstock.server.state_location import require_movable_state

_ATTEMPTS = 10


@dataclass(frozen=True)
class DeploymentChanges:
    """The changes that one caller asks for."""

    store: ControlStore
    settings: ServerSettings
    access: Access

    def put(
        self, name: str, given: GivenDefinition, condition: Condition
    ) -> tuple[DeploymentRow, bool]:
        """Store a definition; return the deployment, and whether it is new."""
        if is_name(name) and (taken := self.store.deployments.get(name)) is not None:
            require(self.access, Role.OPERATOR, taken.labels)

        def attempt(before: DeploymentRow | None) -> DeploymentRow:
            labels = self._labels(given, before)
            checked = self.check(name, given, before)
            checked.require_valid(name)
            with self.store.change():
                row = self.store.deployments.put(
                    name,
                    checked.kind,
                    checked.sealed,
                    by=self.access.user,
                    labels=labels,
                    desired=given.desired,
                    expected=before.revision if before else 0,
                )
                return self._audited("put", before, row)

        before, row = self._repeated(name, condition, attempt)
        return row, before is None

    def check(self, name: str, given: GivenDefinition, before: DeploymentRow | None) -> Checked:
        """Return a definition that was checked for a place in this store."""
        previous = before.spec if before else None
        checked = checked_definition(self.store.secrets, name, given.text, previous, given.kind)
        if not checked.problems and checked.state_is_known:
            require_movable_state(
                name,
                checked.state,
                several_machines=self.store.database.dialect != "sqlite",
                shared_state=self.settings.shared_state,
            )
        return checked

    def patch(
        self,
        name: str,
        labels: Mapping[str, str | None] | None,
        desired: Desired | None,
        condition: Condition,
    ) -> DeploymentRow:
        """Change labels (None removes one) and the desired state of a deployment."""

        def attempt(before: DeploymentRow | None) -> DeploymentRow:
            row = self._existing(name, before)
            merged = {**row.labels, **(labels or {})}
            kept = {key: value for key, value in merged.items() if value is not None}
            require(self.access, Role.OPERATOR, kept)
            with self.store.change():
                changed = self.store.deployments.put(
                    name,
                    row.kind,
                    row.spec,
                    by=self.access.user,
                    labels=kept,
                    desired=desired,
                    expected=row.revision,
                )
                return self._audited("patch", row, changed)

        return self._repeated(name, condition, attempt)[1]

    def rollback(self, name: str, generation: int, condition: Condition) -> DeploymentRow:
        """Store an earlier generation once more."""

        def attempt(before: DeploymentRow | None) -> DeploymentRow:
            row = self._existing(name, before)
            if (old := self.store.deployments.generation(name, generation)) is not None:
                require(self.access, Role.OPERATOR, old.labels)
            with self.store.change():
                changed = self.store.deployments.rollback(
                    name, generation, by=self.access.user, expected=row.revision
                )
                return self._audited("rollback", row, changed, rolled_back_to=generation)

        return self._repeated(name, condition, attempt)[1]

    def set_desired(self, name: str, desired: Desired, condition: Condition) -> DeploymentRow:
        """Ask for another state; `DELETED` removes the deployment."""

        def attempt(before: DeploymentRow | None) -> DeploymentRow:
            row = self._existing(name, before)
            with self.store.change():
                changed = self.store.deployments.set_desired(
                    name, desired, by=self.access.user, expected=row.revision
                )
                return self._audited(desired.value, row, changed)

        return self._repeated(name, condition, attempt)[1]

    def restart(self, name: str, condition: Condition) -> DeploymentRow:
        """Ask for a restart."""

        def attempt(before: DeploymentRow | None) -> DeploymentRow:
            row = self._existing(name, before)
            with self.store.change():
                changed = self.store.deployments.restart(
                    name, by=self.access.user, expected=row.revision
                )
                return self._audited("restart", row, changed)

        return self._repeated(name, condition, attempt)[1]

    def _existing(self, name: str, before: DeploymentRow | None) -> DeploymentRow:
        if before is None:
            raise not_found(self.store, self.access, name)
        return before

    def _labels(self, given: GivenDefinition, before: DeploymentRow | None) -> dict[str, str]:
        """Return the labels of a new definition; the caller needs the role for them, too."""
        old = before.labels if before else {}
        labels = old if given.labels is None else given.labels
        require(self.access, Role.OPERATOR, labels)
        return labels

    def _repeated(
        self,
        name: str,
        condition: Condition,
        attempt: Callable[[DeploymentRow | None], DeploymentRow],
    ) -> tuple[DeploymentRow | None, DeploymentRow]:
        """Read, decide and write; again, where another change came in between and none was excluded."""
        for left in reversed(range(_ATTEMPTS)):
            before = self._read(name)
            condition.check(name, before)
            try:
                return before, attempt(before)
            except ChangedError:
                if condition.is_given or not left:
                    raise
        raise AssertionError("not reached")

    def _read(self, name: str) -> DeploymentRow | None:
        """Return a deployment that the caller may change; None if there is none of this name."""
        row = self.store.deployments.get(name) if is_name(name) else None
        if row is None:
            return None
        return find_for(self.store, self.access, name, Role.OPERATOR)

    def _audited(
        self, action: str, before: DeploymentRow | None, row: DeploymentRow, **detail: Any
    ) -> DeploymentRow:
        """Write a change to the audit log, in its own transaction; without a difference there is none."""
        if before is None or before.revision != row.revision:
            changed = {"generation": row.generation, "labels": row.labels, **detail}
            self.store.audit.add(
                self.access.user,
                f"deployment.{action}",
                row.name,
                desired=row.desired.value,
                **changed,
            )
        return row
