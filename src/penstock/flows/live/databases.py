"""Queries and statements on databases, through SQLAlchemy: values are bound by the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.errors import missing_extra
from penstock.flows.error_codes import Fault
from penstock.flows.publish.database_address import checked_address
from penstock.flows.publish.operations import DatabasePublish
from penstock.flows.running.systems import PublishRequest, Receipt

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Engine

_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "sqlite": "sqlite"}


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

        try:
            with engine.begin() as connection:
                found = connection.execute(sa.text(sql), dict(parameters))
                if not found.returns_rows:
                    return []
                return [dict(row._mapping) for row in found.fetchmany(options.most)]
        except sa.exc.SQLAlchemyError as error:
            raise _fault(error) from None

    def publish(
        self, operation: DatabasePublish, requests: Sequence[PublishRequest]
    ) -> list[Receipt | Fault]:
        """Run the statement for each message, each in a transaction of its own."""
        engine = self._engine(operation.url, operation.password)
        text = operation.text()
        return [_executed(engine, text, request.fields) for request in requests]

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


def _executed(engine: Engine, text: str, parameters: Mapping[str, Any]) -> Receipt | Fault:
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    try:
        with engine.begin() as connection:
            return {"rows": connection.execute(sa.text(text), dict(parameters)).rowcount}
    except sa.exc.SQLAlchemyError as error:
        return _fault(error)


def _fault(error: Exception) -> Fault:
    import sqlalchemy as sa  # noqa: PLC0415 - an extra

    is_away = isinstance(error, sa.exc.OperationalError) and getattr(
        error, "connection_invalidated", False
    )
    is_away = is_away or isinstance(error, sa.exc.TimeoutError | sa.exc.InterfaceError)
    # Without the parameters: they may be secrets, and are the message's anyway.
    reason = str(getattr(error, "orig", None) or error)
    return Fault(f"DATABASE:{'UNAVAILABLE' if is_away else 'REFUSED'}", reason)
