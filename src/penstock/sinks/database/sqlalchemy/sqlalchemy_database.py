"""Any database that SQLAlchemy has a dialect for: plain INSERT, UPDATE and DELETE, at-least-once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql.types import DataType
from sqlalchemy import exc

from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.sinks.database.database_api import Database, Form, Layout
from penstock.sinks.database.sqlalchemy.sqlalchemy_session import SQLAlchemySession
from penstock.sinks.database.type_map import textual

_REFUSED = (exc.IntegrityError, exc.DataError)
_OF_SETTINGS = (exc.NoSuchModuleError, exc.ArgumentError, ModuleNotFoundError)


class AnyDialect(Database):
    """A database behind one of SQLAlchemy's dialects, whose driver is installed."""

    @contextmanager
    def session(self) -> Iterator[SQLAlchemySession]:
        """Open a session: closed on every path."""
        try:
            engine = self._engine()
            try:
                with engine.connect() as connection:
                    yield SQLAlchemySession(connection)
                    connection.rollback()
            finally:
                engine.dispose()
        except (exc.SQLAlchemyError, ModuleNotFoundError) as error:
            raise self._translated(error) from None

    def _engine(self) -> sa.Engine:
        url = sa.make_url(self.address.url)
        if self.address.password:
            url = url.set(password=self.address.password.get_secret_value())
        return sa.create_engine(url, poolclass=sa.NullPool)

    def _translated(self, error: Exception) -> Exception:
        """Sort the error by its class: drivers have no codes in common."""
        cause = getattr(error, "orig", None) or error
        said = self.address.masked(" ".join(str(cause).split()))
        if isinstance(error, _REFUSED):
            return RefusedError(said)
        if isinstance(error, _OF_SETTINGS):
            return ConfigError(
                f"SQLAlchemy cannot use {self.address.url}: {said}; install the driver, or check 'url'"
            )
        if isinstance(error, (exc.ProgrammingError, exc.CompileError, exc.NoSuchTableError)):
            return ConfigError(
                f"the database at {self.address.url} refuses a statement: {said}; check the table and "
                "the user's rights"
            )
        # A wrong password and a server that is away are the same error in most drivers.
        return TransientError(f"{self.address.url} is away or refuses: {said}")

    def known(self, kind: str, wanted: DataType) -> DataType | None:  # noqa: ARG002
        """Return the type of the rows: what does not fit is the driver's to refuse."""
        return wanted

    def form(self, _layout: Layout) -> Form:
        """Return Arrow's own form, with nested values as JSON."""
        return Form(textual, _frame)


def _frame(batch: pa.RecordBatch) -> bytes:
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(written.getvalue())
