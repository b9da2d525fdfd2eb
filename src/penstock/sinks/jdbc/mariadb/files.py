"""A connection that sends the one file that we asked the server to load, whatever the server asks for.

In MariaDB's protocol it is the server that names the file of a LOAD DATA LOCAL: one that was taken over
could ask for any file of this machine.
"""

from __future__ import annotations

from typing import Any

import pymysql
from pymysql.connections import MySQLResult


class OwnFilesOnly(pymysql.Connection):
    """A connection to MariaDB; `sends` is the only file that leaves this machine."""

    sends: str | None = None

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        """Read the answer as the base class does, with a result that looks at the file's name."""
        self._result = None
        result = _Result(self)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


class _Result(MySQLResult):
    connection: Any

    def _read_load_local_packet(self, first_packet: Any) -> None:
        asked = first_packet.get_all_data()[1:].decode(errors="replace")
        if asked != self.connection.sends:
            self.connection._force_close()
            raise pymysql.InternalError(
                f"the server asked for the file {asked!r} instead of the one that is loaded; "
                "the connection was closed"
            )
        super()._read_load_local_packet(first_packet)  # type: ignore[misc]
