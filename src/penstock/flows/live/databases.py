"""Queries and statements on databases, through SQLAlchemy: values are bound by the driver."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.errors import missing_extra
from penstock.flows.error_codes import Fault
from penstock.flows.live.database_values import plain_row
from penstock.flows.publish.database_address import checked_address
from penstock.flows.publish.operations import DatabasePublish
from penstock.flows.running.systems import PublishRequest, Receipt
from penstock.flows.steps.sql_query import with_plain_colons

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Connection, Engine

_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "sqlite": "sqlite"}
_STEPS = 10_000
# What another attempt may pass: a serialization failure, a deadlock, too many connections, a server
# that starts or stops (PostgreSQL's states; MariaDB's numbers; SQLite's texts).
_PASSING_STATES = ("40001", "40P01", "53", "57P")
_PASSING_NUMBERS = frozenset({1020, 1040, 1203, 1205, 1213})
_PASSING_TEXTS = ("database is locked", "database table is locked")
# What a database says of a statement that it ended because of its time.
_LATE_STATE, _LATE_NUMBERS, _LATE_TEXT = "57014", frozenset({1969, 3024}), "interrupted"


class Databases:
    """The databases of a process, each with its connections."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}

    def query(
        self, _step: str, options: Any, sql: str, parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        engine = self._engine(options.database, options.password)
        import sqlalchemy as sa  # noqa: PLC0415 - an extra

        text = with_plain_colons(sql)
        try:
            with _connected(engine) as connection, _limited(connection, options.timeout) as before:
                found = connection.execute(sa.text(before + text), dict(parameters))
                if not found.returns_rows:
                    return []
                return [plain_row(row._mapping) for row in found.fetchmany(options.most)]
        except sa.exc.SQLAlchemyError as error:
            if _is_late(error):
                raise _late("query", options.timeout) from None
            raise _fault(error) from None

    def publish(
        self, operation: DatabasePublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Run the statement for each message, each in a transaction of its own."""
        engine = self._engine(operation.url, operation.password)
        text, timeout = operation.text(), operation.timeout
        return [_executed(engine, text, request.fields, timeout) for request in requests]

    def close(self) -> None:
        """Close the connections."""
        while self._engines:
            self._engines.popitem()[1].dispose()

    def _engine(self, url: str, password: SecretStr | None) -> Engine:
        try:
            import sqlalchemy as sa  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "a database in a flow", "spark") from missing
        address = checked_address(url, password)
        key = f"{address.url} {address.password.get_secret_value() if address.password else ''}"
        if key not in self._engines:
            scheme = urlsplit(address.url).scheme
            made = sa.make_url(address.url.replace(scheme, _DRIVERS[address.kind], 1))
            secret = address.password.get_secret_value() if address.password else None
            self._engines[key] = sa.create_engine(
                made.set(password=secret) if secret else made, pool_pre_ping=True
            )
        return self._engines[key]


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    """Give a connection and a transaction; a database that cannot be reached is UNAVAILABLE."""
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    try:
        connection = engine.connect()
    except sa.exc.OperationalError as error:
        raise Fault("DATABASE:UNAVAILABLE", _reason(error)) from None
    with connection, connection.begin():
        yield connection


def _executed(
    engine: Engine, text: str, parameters: Mapping[str, Any], timeout: float
) -> Receipt | Fault:
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    try:
        with _connected(engine) as connection, _limited(connection, timeout) as before:
            statement = sa.text(before + with_plain_colons(text))
            return {"rows": connection.execute(statement, dict(parameters)).rowcount}
    except Fault as fault:
        return fault
    except sa.exc.SQLAlchemyError as error:
        return _fault(error) if not _is_late(error) else _late("statement", timeout)
    except Exception as error:  # a value that the driver cannot write belongs to this message
        return Fault("DATABASE:REFUSED", f"{type(error).__name__}: {error}")


@contextmanager
def _limited(connection: Connection, seconds: float) -> Iterator[str]:
    """Limit the time of one statement; give what must be before its text."""
    kind = connection.dialect.name
    if kind == "postgresql":
        limit = min(max(1, round(seconds * 1000)), 2**31 - 1)
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {limit}")
        yield ""
    elif kind == "sqlite":
        until = time.monotonic() + seconds
        raw: Any = connection.connection.dbapi_connection
        raw.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
        try:
            yield ""
        finally:
            raw.set_progress_handler(None, 0)
    else:
        yield f"SET STATEMENT max_statement_time = {seconds:f} FOR "


def _late(what: str, timeout: float) -> Fault:
    return Fault("CORE:TIMEOUT", f"the {what} takes longer than {timeout:g} s")


def _is_late(error: Exception) -> bool:
    state, number, text = _signs(error)
    return state == _LATE_STATE or number in _LATE_NUMBERS or text == _LATE_TEXT


def _fault(error: Exception) -> Fault:
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    state, number, text = _signs(error)
    is_away = (
        isinstance(error, sa.exc.TimeoutError | sa.exc.InterfaceError)
        or bool(getattr(error, "connection_invalidated", False))
        or state.startswith(_PASSING_STATES)
        or number in _PASSING_NUMBERS
        or text.startswith(_PASSING_TEXTS)
    )
    return Fault(f"DATABASE:{'UNAVAILABLE' if is_away else 'REFUSED'}", _reason(error))


def _signs(error: Exception) -> tuple[str, int, str]:
    """Return PostgreSQL's state, MariaDB's number and the text of an error."""
    cause = getattr(error, "orig", None)
    first = next(iter(getattr(cause, "args", ())), None)
    number = first if isinstance(first, int) else 0
    return str(getattr(cause, "sqlstate", None) or ""), number, str(cause)


def _reason(error: Exception) -> str:
    """Return the text without the parameters: they may be secrets, and are the message's anyway."""
    return str(getattr(error, "orig", None) or error)
