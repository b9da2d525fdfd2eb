"""Events of deployments, numbered in the order of their commits, so that a reader can follow them.

A sequence of PostgreSQL would not do: its numbers become visible in another order, and a reader that
asks for "everything after 7" would miss a 6 that is committed later.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.rows import EventRow
from penstock.control.store.tables import EVENTS, SEQUENCE
from penstock.control.store.texts import storable

_NUMBERS = "numbers"
MOST_EVENTS = 1000
"""The number of events that are stored for a deployment."""


def next_number(session: sa.Connection, of: str = _NUMBERS, count: int = 1) -> int:
    """Return the last of the next `count` numbers; other writers of them wait for this transaction.

    Call it before the transaction changes any other row: two transactions that take locks in
    different orders would wait for each other.
    """
    counted = SEQUENCE.update().where(SEQUENCE.c.name == of)
    taken = counted.values(value=SEQUENCE.c.value + count).returning(SEQUENCE.c.value)
    return int(session.execute(taken).scalar_one())


class Events:
    """The newest events of each deployment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, deployment: str, kind: str, text: str) -> int:
        """Store an event; return its number."""
        with self._database.write() as session:
            number = next_number(session)
            self.insert(session, number, deployment, kind, text)
        return number

    def insert(
        self, session: sa.Connection, number: int, deployment: str, kind: str, text: str
    ) -> None:
        """Store an event with a number of this transaction, and delete the oldest ones."""
        values = {
            "number": number,
            "deployment": deployment,
            "kind": kind,
            "text": storable(text),
        }
        session.execute(EVENTS.insert().values(**values, at=self._database.now))
        mine = EVENTS.c.deployment == deployment
        newest = sa.select(EVENTS.c.number).where(mine).order_by(EVENTS.c.number.desc())
        last = session.execute(newest.offset(MOST_EVENTS).limit(1)).scalar()
        if last is not None:
            session.execute(EVENTS.delete().where(mine, EVENTS.c.number <= last))

    def last(self) -> int:
        """Return the number of the newest event; 0 if there is none."""
        with self._database.read() as session:
            return int(session.execute(sa.select(sa.func.max(EVENTS.c.number))).scalar() or 0)

    def newest(
        self, most: int, *, deployment: str | None = None, among: Collection[str] | None = None
    ) -> list[EventRow]:
        """Return the newest events, of one deployment or `among` some; the oldest of them first."""
        query = sa.select(EVENTS).order_by(EVENTS.c.number.desc()).limit(most)
        query = _of(query, deployment, among)
        with self._database.read() as session:
            return [EventRow(**row) for row in session.execute(query).mappings()][::-1]

    def after(
        self,
        number: int = 0,
        *,
        deployment: str | None = None,
        among: Collection[str] | None = None,
        most: int = 1000,
    ) -> list[EventRow]:
        """Return events with a greater number, of one deployment or `among` some; the oldest first."""
        query = _of(sa.select(EVENTS).where(EVENTS.c.number > number), deployment, among)
        with self._database.read() as session:
            rows = session.execute(query.order_by(EVENTS.c.number).limit(most)).mappings()
            return [EventRow(**row) for row in rows]


def _of(
    query: sa.Select[Any], deployment: str | None, among: Collection[str] | None
) -> sa.Select[Any]:
    if deployment is not None:
        query = query.where(EVENTS.c.deployment == deployment)
    return query if among is None else query.where(EVENTS.c.deployment.in_(sorted(among)))
