"""Keys that the connectors of JDBC share, sinks and sources."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.connect.config_definition import Key, Type, one_of_any_case
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connectors.jdbc_address import JdbcAddress
from penstock.connect.mapped_class import only

URL = Key(
    "connection.url",
    documentation="The address of the database: jdbc:postgresql://, jdbc:mariadb://, jdbc:mysql:// or "
    "jdbc:sqlite:.",
    importance="HIGH",
    group="Connection",
)
PASSWORD = Key(
    "connection.password", Type.PASSWORD, None, "The password.", "HIGH", group="Connection"
)


def user_key(name: str) -> Key:
    """Return the key of the user."""
    return Key(name, default=None, documentation="The user.", importance="HIGH", group="Connection")


DIALECT = Key(
    "dialect.name",
    default="",
    documentation="The dialect, which follows from the address.",
    importance="LOW",
    group="Connection",
    check=one_of_any_case(
        "", "PostgreSqlDatabaseDialect", "MySqlDatabaseDialect", "MariaDbDatabaseDialect",
        "SqliteDatabaseDialect", "GenericDatabaseDialect",
    ),
)  # fmt: skip


def time_zone(name: str) -> Key:
    """Return the key of the zone in which times are."""
    return Key(
        name,
        default="UTC",
        documentation="The zone of times without one: UTC.",
        check=only(("UTC", "Etc/UTC", "Z", "GMT"), "times are in UTC here"),
    )


RETRIES = "an operation that fails because a system is away is repeated until it succeeds"
WITHOUT_EFFECT = {
    "connection.attempts": RETRIES,
    "connection.backoff.ms": RETRIES,
    "quote.sql.identifiers": "names of tables and columns are always quoted",
    "sql.quote.identifiers": "names of tables and columns are always quoted",
    "trim.sensitive.log": "values of records are not logged",
}
REFUSED = {
    "jdbc.credentials.provider.class.name": "classes of Java are not loaded; give the user and the "
    "password, also as references",
    "connection.oauth*": "there are no tokens for databases; give a user and a password",
    "connection.*": "properties of JDBC drivers have no equivalent; put what the database needs into the "
    "address",
}


def read_address(config: ConnectorConfig, user: str) -> JdbcAddress:
    """Return the address of a configuration; raise ValueError with what is wrong with it."""
    return JdbcAddress.read(config[URL.name], config[user] or None, config[PASSWORD.name] or None)


def address_obstacles(config: ConnectorConfig, user: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the address."""
    try:
        read_address(config, user)
    except ValueError as error:
        yield URL.name, f"Invalid value for configuration {URL.name}: {error}"
