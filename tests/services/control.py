"""Fixtures for tests of the control plane's store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from penstock.control.store import Database


@contextmanager
def recorded_statements(database: Database) -> Iterator[Callable[[], list[str]]]:
    """Return what empties a list of the statements that were sent, and returns it."""
    sent: list[str] = []

    def record(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    def take() -> list[str]:
        taken, sent[:] = list(sent), []
        return taken

    sa.event.listen(database.engine, "before_cursor_execute", record)
    yield take
    sa.event.remove(database.engine, "before_cursor_execute", record)
