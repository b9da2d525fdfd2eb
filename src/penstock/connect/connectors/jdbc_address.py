"""Addresses of JDBC as addresses of Penstock's sink and source `database`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

_FORMS = (
    "jdbc:postgresql://HOST/DATABASE, jdbc:mariadb://HOST/DATABASE, jdbc:mysql://HOST/DATABASE and "
    "jdbc:sqlite:FILE; for other databases use PenstockDatabaseSink or PenstockDatabaseSource with an "
    "address of SQLAlchemy"
)
_SERVER = re.compile(r"jdbc:(postgresql|mariadb|mysql)://([^/?#]*)/([^?#]*)(?:\?(.*))?")
_TRUE = ("true", "")
# What drivers do for speed or by habit: nothing here depends on it.
_INDIFFERENT = frozenset(
    {
        "reWriteBatchedInserts", "rewriteBatchedStatements", "prepareThreshold", "tcpKeepAlive",
        "defaultRowFetchSize", "socketTimeout", "loginTimeout", "stringtype", "autoReconnect",
        "useUnicode", "characterEncoding", "zeroDateTimeBehavior", "nullCatalogMeansCurrent",
        "nullDatabaseMeansCurrent", "allowPublicKeyRetrieval", "allowMultiQueries", "useCursorFetch",
        "useServerPrepStmts", "cachePrepStmts", "preparedStatementCacheQueries", "tinyInt1isBit",
        "connectionTimeZone", "serverTimezone", "sessionVariables", "useBulkStmts", "targetServerType",
    }
)  # fmt: skip
_POSTGRESQL = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "connectTimeout": "connect_timeout",
    "ApplicationName": "application_name",
}
_MARIADB_TLS = {"serverSslCert": "ssl_ca", "sslMode": "", "useSSL": "", "requireSSL": ""}


@dataclass(frozen=True)
class JdbcAddress:
    """An address without its password, which is kept apart."""

    url: str
    password: str | None = None

    @classmethod
    def read(cls, url: str, user: str | None = None, password: str | None = None) -> JdbcAddress:
        """Read an address of JDBC; raise ValueError with what is wrong with it.

        >>> JdbcAddress.read("jdbc:postgresql://db:5432/shop?user=app&ssl=true").url
        'postgresql://app@db:5432/shop?sslmode=verify-full'
        >>> JdbcAddress.read("jdbc:sqlite:/data/shop.db").url
        'sqlite:////data/shop.db'
        """
        if url.startswith("jdbc:sqlite:"):
            return cls(_sqlite(url.removeprefix("jdbc:sqlite:")))
        found = _SERVER.fullmatch(url.strip())
        if url.strip().startswith("${"):
            return cls(url)  # a reference: workers know its value
        if found is None:
            raise ValueError(f"this address of a database cannot be used; allowed: {_FORMS}")
        kind, host, database, query = found.groups()
        if "," in host or "@" in host:
            raise ValueError("give one host, and the user in a key of its own")
        parameters = dict(parse_qsl(query or "", keep_blank_values=True))
        user = parameters.pop("user", None) if user is None else user
        secret = parameters.pop("password", None)
        options = (_postgresql if kind == "postgresql" else _mariadb)(parameters)
        place = f"{quote(user, safe='')}@{host}" if user else host
        made = f"{kind}://{place}/{database}{'?' + urlencode(options) if options else ''}"
        return cls(made, password or secret)

    @property
    def options(self) -> dict[str, str]:
        """Return the options `url` and `password`."""
        return {"url": self.url, **({"password": self.password} if self.password else {})}


def _sqlite(path: str) -> str:
    path = path.partition("?")[0].removeprefix("file:")
    if not path or path.startswith(":"):
        raise ValueError("a database in memory is gone with its process; give a file")
    return f"sqlite:///{path}"


def _postgresql(parameters: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for name, value in parameters.items():
        if name in _POSTGRESQL:
            options[_POSTGRESQL[name]] = value
        elif name == "ssl":
            options.setdefault("sslmode", "verify-full" if value in _TRUE else "prefer")
        elif name == "currentSchema":
            options["options"] = f"-csearch_path={unquote(value)}"
        elif name not in _INDIFFERENT:
            raise ValueError(_unknown(name, [*_POSTGRESQL, "ssl", "currentSchema"]))
    return options


def _mariadb(parameters: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for name, value in parameters.items():
        if name in ("useSSL", "requireSSL") and value.lower() == "false":
            continue
        if name == "sslMode" and value.lower() in ("disable", "disabled", "preferred"):
            continue
        if name == "serverSslCert":
            options["ssl_ca"] = value
        elif name in _MARIADB_TLS and "serverSslCert" not in parameters:
            raise ValueError(
                f"the parameter {name!r} asks for TLS: give the file of the authorities (PEM) as "
                "'serverSslCert' in the address"
            )
        elif name not in _INDIFFERENT and name not in _MARIADB_TLS:
            raise ValueError(_unknown(name, ["serverSslCert", "useSSL", "sslMode"]))
    return options


def _unknown(name: str, known: list[str]) -> str:
    return (
        f"the parameter {name!r} of the address has no equivalent here; leave it out; allowed: "
        f"user, password, {', '.join(known)}"
    )
