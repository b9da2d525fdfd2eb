"""The audit log: every change with who, when and what. Rows are added, never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from penstock.config.secrets import mask_mapping
from penstock.control.store.database import Database
from penstock.control.store.events import next_number
from penstock.control.store.tables import AUDIT


@dataclass(frozen=True)
class AuditRow:
    """One change."""

    number: int
    at: float
    who: str
    action: str
    target: str
    detail: dict[str, Any]


class Audit:
    """The audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, who: str, action: str, target: str, **detail: Any) -> None:
        """Store a change; secrets in the detail are masked."""
        text = json.dumps(mask_mapping(detail), default=str, sort_keys=True)
        values = {"who": who[:200], "action": action, "target": target[:200], "detail": text}
        with self._database.write() as session:
            number = next_number(session)
            session.execute(AUDIT.insert().values(number=number, at=self._database.now, **values))

    def before(
        self, number: int | None = None, *, target: str | None = None, most: int = 100
    ) -> list[AuditRow]:
        """Return the changes with a smaller number, the newest first."""
        query = sa.select(AUDIT).order_by(AUDIT.c.number.desc()).limit(most)
        if number is not None:
            query = query.where(AUDIT.c.number < number)
        if target is not None:
            query = query.where(AUDIT.c.target == target)
        with self._database.read() as session:
            rows = session.execute(query).mappings().all()
        return [AuditRow(**{**row, "detail": json.loads(row["detail"])}) for row in rows]
