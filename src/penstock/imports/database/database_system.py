"""A database as the driver sees it: which tables have rows that are safe to read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, nearest
from penstock.imports.database.database_client import DatabaseClient
from penstock.imports.database.database_part import (
    ChunkPart,
    DatabasePart,
    PlanPart,
    Reading,
    open_client,
    place_of,
    require_columns,
)
from penstock.imports.database.future_times import allowed_ahead, limit_of
from penstock.imports.database.horizon import Horizon, is_greater
from penstock.imports.database.row_readers import SERVER, key_order, values_of
from penstock.imports.database.snapshot_plan import SnapshotPlan, chunks_of
from penstock.imports.database.table_range import (
    INCREMENTING,
    TIMESTAMP,
    OrderColumn,
    Range,
    Relation,
    Value,
    Values,
)
from penstock.pipeline.importing import Part, Position, System, key_of
from penstock.sinks.database.database_api import Table

log = event_logger(__name__)
# A clock of seconds, as columns of MariaDB and SQLite have it, shows another value after this time.
_CLOCK_TICK = 1.0
# How long the first reading waits for transactions that are running, beyond the delay, in seconds.
_FIRST_WAIT = 30.0
_LOOK_AGAIN = 0.1


class DatabaseSystem(System):
    """The tables or the query of one definition. The connection is made when it is needed."""

    def __init__(
        self,
        reading: Reading,
        wanted: Sequence[str] | str,
        topic_of: Callable[[Relation], str],
        delay: float | None,
        poll: float,
        *,
        chunk_rows: int = 0,
    ) -> None:
        self._reading = reading
        # Names and patterns of tables, or the text of a query.
        self._wanted = wanted
        self._topic_of = topic_of
        self._delay = delay
        self._poll = poll
        self._chunk_rows = chunk_rows
        self._server: str | None = None
        self._client: DatabaseClient | None = None
        self._horizons: dict[Relation, Horizon] = {}
        self._newest: dict[Relation, Value | None] = {}
        # How much later than the clock times may be.
        self._ahead: dict[Relation, timedelta] = {}
        # The tables of whose values something was reported that prevents rows from being read.
        self._reported: set[Relation] = set()
        # Bulk: the number of the load of each table, and since when it is finished.
        self._loads: dict[Relation, int] = {}
        self._finished: dict[Relation, float] = {}

    def pending(self, positions: Mapping[str, Position]) -> list[Part]:
        """Return the tables that have rows after their positions, up to their horizons."""
        with self._connected() as client:
            relations = self._relations(client)
            self._server = client.server_id()
            if self._reading.order:
                self._watch(client, relations)
            find = self._parts if self._reading.order else self._bulk_parts
            return [part for each in relations for part in find(client, each, positions)]

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @contextmanager
    def _connected(self) -> Iterator[DatabaseClient]:
        try:
            if self._client is None:
                self._client = open_client(self._reading.address)
            yield self._client
        except BaseException:
            self.close()
            raise

    # -- what is to be read

    def _relations(self, client: DatabaseClient) -> list[Relation]:
        if isinstance(self._wanted, str):
            return [Relation(query=self._wanted)]
        tables, schema = client.tables(), client.default_schema()
        return [Relation(table) for table in chosen_tables(self._wanted, tables, schema)]

    def _parts(
        self, client: DatabaseClient, relation: Relation, positions: Mapping[str, Position]
    ) -> list[Part]:
        order, position = self._reading.order, positions.get(key_of(place_of(relation)))
        self._require_own_server(relation, position)
        after = values_of(order, position)
        self._report_renumbered(relation, after)
        if chunks := self._chunks(relation, positions):
            return chunks
        safe = self._horizons[relation].safe
        if safe is None or not client.has_rows(relation, Range(order, after, (safe,))):
            return []
        if position is None and (plan := self._new_plan(client, relation, order[0], safe)):
            return [self._part(PlanPart, relation, plan=plan)]
        return [self._part(DatabasePart, relation, upto=safe)]

    def _part(self, kind: type[DatabasePart], relation: Relation, **more: Any) -> DatabasePart:
        topic = self._topic_of(relation)
        return kind(relation, self._reading, topic, server=self._server, **more)

    def _require_own_server(self, relation: Relation, position: Position | None) -> None:
        """Refuse a position of another server: its numbers say nothing about the rows here."""
        own = (position or {}).get(SERVER)
        if own is None or self._server is None or own == self._server:
            return
        raise ConfigError(
            f"the position of {relation} is of the server {own}, and {self._reading.address.url} is "
            f"{self._server}: with 'penstock offsets reset' it is read from the start; if it has the "
            f"same rows (a copy, an upgrade), 'penstock offsets set' the position without {SERVER!r}"
        )

    # -- chunks

    def _chunks(self, relation: Relation, positions: Mapping[str, Position]) -> list[Part]:
        """Return the chunks that are not finished, of a table that is read in chunks."""
        place = place_of(relation)
        plan = self._plan(positions.get(key_of(place)))
        chunks = plan.unfinished(place, positions) if plan else []
        return [self._part(ChunkPart, relation, chunk=chunk) for chunk in chunks]

    def _plan(self, position: Position | None) -> SnapshotPlan | None:
        plan = SnapshotPlan.read(position)
        return plan if plan and plan.by == self._roles else None

    @property
    def _roles(self) -> tuple[str, ...]:
        return tuple(column.role for column in self._reading.order)

    def _new_plan(
        self, client: DatabaseClient, relation: Relation, column: OrderColumn, upto: Value
    ) -> SnapshotPlan | None:
        """Return how a table is split that was never read; None where it is not large."""
        if relation.table is None or not self._chunk_rows:
            return None
        chunks = chunks_of(client.about_rows(relation.table), self._chunk_rows)
        if chunks < 2:
            return None
        return SnapshotPlan.create(self._roles, client.oldest(relation, column), upto, chunks)

    # -- the horizons

    def _watch(self, client: DatabaseClient, relations: Sequence[Relation]) -> None:
        """Move the horizons; the first value of each is waited for, so that it is read at once."""
        new = [each for each in relations if each not in self._horizons]
        for relation in new:
            self._horizons[relation] = self._horizon(client, relation)
        self._note_and_advance(client, relations)
        deadline = time.monotonic() + (self._pause(client) + _FIRST_WAIT)
        while waiting := [each for each in new if self._is_unread(each)]:
            if time.monotonic() > deadline:
                names = [str(each) for each in waiting]
                log.warning("import_waits_for_transactions", relations=names)
                return
            time.sleep(_LOOK_AGAIN)
            self._advance(client, waiting)

    def _is_unread(self, relation: Relation) -> bool:
        horizon = self._horizons[relation]
        return horizon.safe is None and horizon.is_waiting

    def _horizon(self, client: DatabaseClient, relation: Relation) -> Horizon:
        order = self._reading.order
        columns = client.columns(relation)
        require_columns(relation, order, columns)
        types = {column.name: column.type for column in columns}
        for each in order:
            if not _suits(each.role, types[each.name], is_free=client.default_delay == 0):
                raise ConfigError(
                    f"'{each.role}_column' is {each.name!r}, which is {types[each.name]} in {relation}; "
                    f"allowed: {_ALLOWED[each.role]}"
                )
        self._ahead[relation] = allowed_ahead(types[order[0].name])
        if self._delay is None:
            client.require_order(relation, order[0])
        return Horizon(self._pause(client))

    def _pause(self, client: DatabaseClient) -> float:
        delay = self._delay if self._delay is not None else client.default_delay or 0.0
        return max(delay, _CLOCK_TICK) if self._reading.order[0].role == TIMESTAMP else delay

    def _note_and_advance(self, client: DatabaseClient, relations: Sequence[Relation]) -> None:
        column = self._reading.order[0]
        newest = {each: client.newest(each, column) for each in relations}
        if column.role == TIMESTAMP:
            newest = self._without_future(client, newest)
        self._newest = newest
        for relation in relations:
            self._horizons[relation].note(newest[relation], time.monotonic())
        self._advance(client, relations)

    def _report_renumbered(self, relation: Relation, after: Values | None) -> None:
        """Log a position that is after all rows: those of a table that begins again are not read."""
        newest = self._newest.get(relation)
        if self._reading.order[0].role != INCREMENTING or after is None or newest is None:
            return
        if not is_greater(after[0], newest):
            self._reported.discard(relation)
        elif relation not in self._reported:
            self._reported.add(relation)
            log.warning(
                "import_position_after_newest_row",
                relation=str(relation),
                position=after[0],
                newest=newest,
            )

    def _without_future(
        self, client: DatabaseClient, newest: Mapping[Relation, Value | None]
    ) -> dict[Relation, Value | None]:
        """Return the newest times that have come: later ones are left until then."""
        found, now = dict(newest), client.now()
        for relation, value in newest.items():
            limit = limit_of(value, now, self._ahead[relation])
            if limit is None:
                self._reported.discard(relation)
                continue
            found[relation] = client.newest(relation, self._reading.order[0], limit)
            if relation not in self._reported:
                self._reported.add(relation)
                log.warning(
                    "import_leaves_future_times", relation=str(relation), newest=value, clock=limit
                )
        return found

    def _advance(self, client: DatabaseClient, relations: Sequence[Relation]) -> None:
        for relation in relations:

            def running(relation: Relation = relation) -> frozenset[str]:
                if self._delay is not None:
                    return frozenset()
                return client.running(relation, self._reading.order[0])

            self._horizons[relation].advance(time.monotonic(), running)

    # -- bulk

    def _bulk_parts(
        self, client: DatabaseClient, relation: Relation, positions: Mapping[str, Position]
    ) -> list[Part]:
        """Return the load that is due: one at the start, an interval after the last one another."""
        position = positions.get(key_of(place_of(relation))) or {}
        chunks = self._chunks(relation, positions)
        load = position.get("load", 0)
        is_finished = bool(position.get("finished")) or (
            self._plan(position) is not None and not chunks
        )
        if relation not in self._loads:
            self._loads[relation] = load + 1 if is_finished or not load else load
        elif is_finished and load >= self._loads[relation]:
            since = self._finished.setdefault(relation, time.monotonic())
            if time.monotonic() - since < self._poll:
                return []
            del self._finished[relation]
            self._loads[relation] = load + 1
        if chunks:
            return chunks
        number = self._loads[relation]
        if load < number and (plan := self._bulk_plan(client, relation)):
            return [self._part(PlanPart, relation, load=number, plan=plan)]
        return [self._part(DatabasePart, relation, load=number)]

    def _bulk_plan(self, client: DatabaseClient, relation: Relation) -> SnapshotPlan | None:
        """Return how a table is split by its primary key, if that begins with a whole number."""
        order = key_order(client, relation, client.columns(relation))
        if not order or order[0].role != INCREMENTING:
            return None
        highest = client.newest(relation, order[0])
        return None if highest is None else self._new_plan(client, relation, order[0], highest)


_ALLOWED = {
    INCREMENTING: "a column of whole numbers that grow",
    TIMESTAMP: "a column of dates with times (timestamp, timestamptz, datetime)",
}


def _suits(role: str, type_: pa.DataType, *, is_free: bool) -> bool:
    """Return whether a column can have a role; SQLite has no types of times."""
    if role == TIMESTAMP:
        return pa.types.is_timestamp(type_) or (is_free and not pa.types.is_binary(type_))
    unsigned = pa.types.is_decimal(type_) and type_.scale == 0
    return bool(pa.types.is_integer(type_) or unsigned)


def chosen_tables(wanted: Sequence[str], tables: Sequence[Table], schema: str) -> list[Table]:
    """Return the tables that are named or match a pattern; names without a schema are in the default one.

    >>> found = chosen_tables(["ord*", "hr.staff"], [Table("orders", "s"), Table("staff", "hr")], "s")
    >>> [str(table) for table in found]
    ['s.orders', 'hr.staff']
    """
    chosen: dict[Table, None] = {}
    for each in wanted:
        full = each if "." in each else f"{schema}.{each}"
        if "*" in each:
            matching = [table for table in tables if _matches(str(table), full)]
        else:
            matching = [table for table in tables if str(table) == full]
        if not matching and "*" not in each:
            names = [table.name if table.schema == schema else str(table) for table in tables]
            hint = (
                nearest(each, names) if names else "the database has no tables that this user sees"
            )
            raise ConfigError(f"there is no table {each!r} in the database; {hint}")
        chosen |= dict.fromkeys(matching)
    return list(chosen)


def _matches(name: str, pattern: str) -> bool:
    literal = pattern.replace("[", "[[]").replace("?", "[?]")
    return fnmatchcase(name, literal)
