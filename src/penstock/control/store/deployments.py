"""Deployments: what should run, every generation of it, and who asked for it.

Specs come here with their secrets sealed (`control.secrets`); this module stores texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.events import Events, next_number
from penstock.control.store.rows import (
    FAILED,
    FREE,
    PENDING,
    DeploymentRow,
    Desired,
    Kind,
    SpecRow,
)
from penstock.control.store.tables import (
    COUNTERS,
    DEPLOYMENTS,
    EVENTS,
    LOGS,
    PARTITION_LAG,
    REPLAYS,
    RESTARTS,
    RUNS,
    SAMPLES,
    SPECS,
)
from penstock.errors import ConfigError, NotFoundError, nearest

_NAME = re.compile(r"[^\x00-\x1f\x7f/\\\ud800-\udfff]{1,200}")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,98}[A-Za-z0-9])?")
_LONGEST_SPEC = 1_000_000


class ChangedError(ConfigError):
    """A deployment has changed since it was read: read it again, and decide again."""


@dataclass(frozen=True)
class _Given:
    name: str
    kind: Kind
    spec: str
    labels: str


@dataclass(frozen=True)
class _Change:
    """A transaction that changes a deployment, the number of its event, and who asked for it."""

    session: sa.Connection
    number: int
    by: str


class Deployments:
    """The deployments and their history."""

    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def put(
        self,
        name: str,
        kind: Kind,
        spec: str,
        *,
        by: str,
        labels: Mapping[str, str] | None = None,
        desired: Desired | None = None,
        expected: int | None = None,
        above: int = 0,
    ) -> DeploymentRow:
        """Store a new deployment or a new generation of one; without a difference nothing changes.

        Parameters
        ----------
        desired
            What it should do; None leaves it as it is, and starts a new one.
        expected
            The revision that the caller has read, 0 for none: another one is a `ChangedError`.
        above
            An epoch that the engine has used before for this name: tokens are greater.
        """
        _check_name(name)
        _check_spec(name, spec)
        given = _Given(name, kind, spec, _labels_text(labels or {}))
        with self._database.write() as session:
            change = _Change(session, next_number(session), by)
            before = self._find(session, name)
            _check_revision(name, before, expected)
            if before is None:
                return self._add(change, given, desired or Desired.RUNNING, above)
            refuse_deleted(before)
            if before.kind is not kind:
                raise ConfigError(
                    f"{name!r} is a {before.kind.value}, and a {kind.value} was given; delete it first, "
                    "or choose another name"
                )
            return self._replace(change, before, given, desired)

    def set_desired(
        self, name: str, desired: Desired, *, by: str, expected: int | None = None
    ) -> DeploymentRow:
        """Ask for another state; `DELETED` is final. One that has failed runs again when resumed."""
        return self._change(name, by, expected, desired.value, desired=desired.value)

    def restart(self, name: str, *, by: str, expected: int | None = None) -> DeploymentRow:
        """Ask for a restart, also of one that has failed."""
        return self._change(name, by, expected, "restart", round=DEPLOYMENTS.c.round + 1)

    def rollback(
        self, name: str, generation: int, *, by: str, expected: int | None = None
    ) -> DeploymentRow:
        """Store an earlier generation once more, as a new one."""
        old = self.generation(name, generation)
        if old is None:
            known = [str(each.generation) for each in self.generations(name)[-20:]]
            raise ConfigError(
                f"{name!r} has no generation {generation}; it has {', '.join(known) or 'none'}"
            )
        return self.put(name, old.kind, old.spec, by=by, labels=old.labels, expected=expected)

    def get(self, name: str) -> DeploymentRow | None:
        """Return a deployment by its name."""
        with self._database.read() as session:
            return self._find(session, name)

    def find(self, name: str) -> DeploymentRow:
        """Return a deployment, or raise with a hint at its name."""
        if (found := self.get(name)) is not None:
            return found
        names = [each.name for each in self.all()]
        hint = nearest(name, names) if names else "there are none"
        raise NotFoundError(f"there is no deployment {name!r}; {hint}")

    def all(self, *, after: str = "", most: int = 10_000) -> list[DeploymentRow]:
        """Return the deployments whose names come after this one, in their order."""
        query = sa.select(DEPLOYMENTS).where(DEPLOYMENTS.c.name > after)
        with self._database.read() as session:
            rows = session.execute(query.order_by(DEPLOYMENTS.c.name).limit(most)).mappings()
            return [DeploymentRow.of(row) for row in rows]

    def labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of all deployments, by name."""
        query = sa.select(DEPLOYMENTS.c.name, DEPLOYMENTS.c.labels)
        with self._database.read() as session:
            return {name: json.loads(labels) for name, labels in session.execute(query)}

    def generations(self, name: str) -> list[SpecRow]:
        """Return every generation without its text, the oldest first: all texts may be large."""
        columns = [each for each in SPECS.c if each.name != "spec"]
        query = sa.select(*columns, sa.literal("").label("spec"))
        query = query.where(SPECS.c.deployment == name).order_by(SPECS.c.generation)
        with self._database.read() as session:
            return [SpecRow.of(row) for row in session.execute(query).mappings()]

    def generation(self, name: str, number: int) -> SpecRow | None:
        """Return one generation; None if there is none of this number."""
        query = sa.select(SPECS).where(SPECS.c.deployment == name, SPECS.c.generation == number)
        with self._database.read() as session:
            row = session.execute(query).mappings().one_or_none()
        return None if row is None else SpecRow.of(row)

    def history(self, name: str) -> list[SpecRow]:
        """Return every generation, the oldest first."""
        query = sa.select(SPECS).where(SPECS.c.deployment == name).order_by(SPECS.c.generation)
        with self._database.read() as session:
            return [SpecRow.of(row) for row in session.execute(query).mappings()]

    def remove(self, name: str, worker: str, token: int) -> bool:
        """Remove a deleted deployment whose state the holder of its lease has cleaned up.

        The row of its run remains, for the token.
        """
        held = sa.and_(RUNS.c.deployment == name, RUNS.c.worker == worker, RUNS.c.token == token)
        deleted = DEPLOYMENTS.c.desired == Desired.DELETED.value
        released = RUNS.update().where(held, sa.exists().where(DEPLOYMENTS.c.name == name, deleted))
        with self._database.write() as session:
            next_number(session)
            ended = released.values(worker=FREE, lease_until=self._database.now, state=PENDING)
            if not session.execute(ended).rowcount:
                return False
            session.execute(DEPLOYMENTS.delete().where(DEPLOYMENTS.c.name == name))
            for table in (SPECS, COUNTERS, SAMPLES, PARTITION_LAG, RESTARTS, REPLAYS, EVENTS, LOGS):
                session.execute(table.delete().where(table.c.deployment == name))
            return True

    def _add(self, change: _Change, given: _Given, desired: Desired, above: int) -> DeploymentRow:
        now, name, session, by = self._database.now, given.name, change.session, change.by
        values = {"kind": given.kind.value, "spec": given.spec, "labels": given.labels}
        stamps = {"created": now, "created_by": by, "changed": now, "changed_by": by}
        numbers = {"generation": 1, "round": 0, "revision": change.number}
        added = DEPLOYMENTS.insert().values(name=name, desired=desired.value, **values)
        session.execute(added.values(**stamps, **numbers))
        stored = SPECS.insert().values(deployment=name, generation=1, **values, at=now, by=by)
        session.execute(stored)
        session.execute(COUNTERS.insert().values(deployment=name))
        self._start_run(session, name, above)
        self._events.insert(session, change.number, name, "created", f"created by {by}")
        return self._require(session, name)

    def _start_run(self, session: sa.Connection, name: str, above: int) -> None:
        """Start the tokens of a name after every second that an epoch may have been numbered by."""
        second = int(session.execute(sa.select(self._database.now)).scalar_one())
        start = max(second, above)
        fresh = {
            "state": PENDING,
            "generation": 0,
            "round": 0,
            "lapses": 0,
            "restarts": 0,
            "takeovers": 0,
        }
        cleared = {**fresh, "error": None, "failed": None, "lease_until": self._database.now}
        kept = sa.case((RUNS.c.token < start, start), else_=RUNS.c.token)
        insert = self._database.upsert(RUNS).values(deployment=name, token=start, **cleared)
        session.execute(
            insert.on_conflict_do_update(
                index_elements=["deployment"], set_={**cleared, "token": kept}
            )
        )

    def _replace(
        self, change: _Change, before: DeploymentRow, given: _Given, desired: Desired | None
    ) -> DeploymentRow:
        session, by, name = change.session, change.by, before.name
        changed: dict[str, Any] = {}
        if (given.spec, given.labels) != (before.spec, _labels_text(before.labels)):
            generation = before.generation + 1
            changed = {"spec": given.spec, "labels": given.labels, "generation": generation}
            stamps = {"at": self._database.now, "by": by, "kind": before.kind.value}
            session.execute(SPECS.insert().values(deployment=name, **changed, **stamps))
            text = f"generation {generation} by {by}"
            self._events.insert(session, change.number, name, "changed", text)
        if desired is not None and desired is not before.desired:
            change = replace(change, number=next_number(session)) if changed else change
            changed |= {"desired": desired.value, **_again_if_failed(before, desired.value)}
            text = f"{desired.value}, asked for by {by}"
            self._events.insert(session, change.number, name, desired.value, text)
        if changed:
            self._update(change, name, changed)
        return self._require(session, name)

    def _change(
        self, name: str, by: str, expected: int | None, kind: str, **changed: Any
    ) -> DeploymentRow:
        with self._database.write() as session:
            change = _Change(session, next_number(session), by)
            before = self._require(session, name)
            _check_revision(name, before, expected)
            if changed.get("desired") == before.desired.value:
                return before
            refuse_deleted(before)
            self._update(change, name, changed | _again_if_failed(before, changed.get("desired")))
            self._events.insert(session, change.number, name, kind, f"{kind}, asked for by {by}")
            return self._require(session, name)

    def _update(self, change: _Change, name: str, changed: dict[str, Any]) -> None:
        now = self._database.now
        stamps = {"revision": change.number, "changed": now, "changed_by": change.by}
        same = DEPLOYMENTS.update().where(DEPLOYMENTS.c.name == name)
        change.session.execute(same.values(**changed, **stamps))

    def _find(self, session: sa.Connection, name: str) -> DeploymentRow | None:
        row = session.execute(sa.select(DEPLOYMENTS).where(DEPLOYMENTS.c.name == name)).mappings()
        return next((DeploymentRow.of(each) for each in row), None)

    def _require(self, session: sa.Connection, name: str) -> DeploymentRow:
        if (found := self._find(session, name)) is None:
            raise NotFoundError(f"there is no deployment {name!r}")
        return found


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name != name.strip() or name in (".", ".."):
        raise ConfigError(
            f"{name[:200]!r} is not a name of a deployment: 1 to 200 characters, without slashes, "
            "control characters, halves of surrogate pairs and blanks at the ends"
        )


def _check_spec(name: str, spec: str) -> None:
    if len(spec) > _LONGEST_SPEC or "\x00" in spec:
        raise ConfigError(
            f"the definition of {name!r} has {len(spec)} characters; allowed: {_LONGEST_SPEC}, "
            "and no NUL among them"
        )


def _labels_text(labels: Mapping[str, str]) -> str:
    for key, value in labels.items():
        if not _LABEL.fullmatch(key) or not _LABEL.fullmatch(value):
            raise ConfigError(
                f"given the label {key!r}: {value!r}; both have 1 to 100 letters, digits, dots, dashes, "
                "underscores and slashes, with a letter or digit at both ends"
            )
    return json.dumps(dict(labels), sort_keys=True)


def _check_revision(name: str, before: DeploymentRow | None, expected: int | None) -> None:
    actual = before.revision if before else 0
    if expected is not None and expected != actual:
        since = f"by {before.changed_by} (revision {actual})" if before else "by a deletion"
        raise ChangedError(
            f"{name!r} was changed {since} since revision {expected} was read; read it again"
        )


def _again_if_failed(before: DeploymentRow, desired: str | None) -> dict[str, Any]:
    """Return what changes, too, so that one that has failed is tried again when it is resumed.

    One that has not failed keeps its round: a short pause that no worker has seen interrupts nothing.
    """
    if desired != Desired.RUNNING.value or before.desired is Desired.RUNNING:
        return {}
    failed = sa.exists().where(RUNS.c.deployment == before.name, RUNS.c.state == FAILED)
    return {"round": DEPLOYMENTS.c.round + sa.case((failed, 1), else_=0)}


def refuse_deleted(before: DeploymentRow) -> None:
    """Raise for a deployment that is being deleted: nothing can be asked of it any more."""
    if before.desired is Desired.DELETED:
        raise ConfigError(
            f"{before.name!r} is being deleted; wait until it is gone to create it again"
        )
