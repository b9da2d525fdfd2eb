"""What MariaDB's errors mean for the engine: come back later, a row is bad, or the settings are."""

from __future__ import annotations

import pymysql

from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.sinks.jdbc.address import Address

_REFUSED = frozenset(
    (1048, 1062, 1136, 1216, 1264, 1265, 1292, 1300, 1364, 1366, 1406, 1451, 1452, 1690, 4025, 4078)
)
_SETTINGS = frozenset((1044, 1045, 1049, 1142, 1143, 1146, 1148, 1227, 1698, 3948, 4166))
_AWAY = frozenset(
    (1021, 1040, 1053, 1077, 1129, 1152, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1206, 1213, 1226,
     1290, 1927, 2002, 2003, 2005, 2006, 2013, 2055)
)  # fmt: skip


def told(error: Exception, address: Address) -> PenstockError | None:
    """Return the error as one of ours, without a secret; None where it is a mistake of this code."""
    if not isinstance(error, pymysql.MySQLError):
        return None
    number = error.args[0] if error.args else 0
    said = address.masked(str(error.args[1] if len(error.args) > 1 else error))
    if number in _SETTINGS:
        return ConfigError(
            f"the sink 'jdbc' cannot work with {address.url}: {said}; check user, password, database, "
            "the user's rights (it creates and alters the table, and 'penstock_offsets'), and that "
            "the server allows local_infile"
        )
    if number in _REFUSED or isinstance(error, (pymysql.DataError, pymysql.IntegrityError)):
        return RefusedError(said)
    if number in _AWAY or isinstance(error, pymysql.InterfaceError):
        return TransientError(f"{address.url} is away or busy: {said or type(error).__name__}")
    return None
