"""COPY out of PostgreSQL through libpq's own calls: no Python generator runs for each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from select import POLLIN, poll
from typing import Any

import psycopg
from psycopg import errors as pgerrors
from psycopg.pq import ExecStatus

from penstock.imports.database.database_client import ROWS_AT_ONCE
from penstock.imports.database.table_range import Value

_BYTES_AT_ONCE = 8 << 20
_MILLISECONDS = 1000


def copied(
    connection: psycopg.Connection[Any], statement: str, values: Sequence[Value]
) -> Iterator[bytes]:
    """Run a COPY with these values, which the driver quotes; yield parts of its output: whole rows."""
    pgconn = connection.pgconn
    bound = psycopg.ClientCursor(connection).mogrify(statement, list(values))
    started = pgconn.exec_(bound.encode())
    if started.status != ExecStatus.COPY_OUT:
        raise pgerrors.error_from_result(started)
    yield from _whole_rows(pgconn)
    while (result := pgconn.get_result()) is not None:
        if result.status != ExecStatus.COMMAND_OK:
            raise pgerrors.error_from_result(result)


def _whole_rows(pgconn: Any) -> Iterator[bytes]:
    """Yield what PostgreSQL sends, some thousand rows at a time."""
    waiting = poll()
    waiting.register(pgconn.socket, POLLIN)
    take = pgconn.get_copy_data
    part, rows, bytes_ = BytesIO(), 0, 0
    # PostgreSQL sends each row in a message of its own, so this loop is much of the work. A list of rows,
    # which are views of memory, would take three times as long: the garbage collector visits them.
    while True:
        size, row = take(1)
        if size > 0:
            part.write(row)
            rows += 1
            bytes_ += size
            if bytes_ >= _BYTES_AT_ONCE or rows == ROWS_AT_ONCE:
                yield part.getvalue()
                part, rows, bytes_ = BytesIO(), 0, 0
        elif size == 0:
            waiting.poll(_MILLISECONDS)
            pgconn.consume_input()
        else:
            break
    if rows:
        yield part.getvalue()
