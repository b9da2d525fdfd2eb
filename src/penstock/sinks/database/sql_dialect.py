"""SQL that MariaDB and SQLite share; both quote names with one sign, doubled where a name has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.pipeline.names import quoted
from penstock.sinks.database.database_api import GONE, ORDER, STAGED, Layout, Table

_RANK = "_penstock_rank"
# S608: what varies in these texts is names, and they are quoted here.


@dataclass(frozen=True)
class SqlDialect:
    """Statements with names in this database's quotes.

    >>> SqlDialect('"').names(["a", 'b"c'])
    '"a", "b""c"'
    """

    quote: str

    def name(self, name: str) -> str:
        """Return one name, quoted."""
        return quoted(name, self.quote)

    def names(self, names: Iterable[str]) -> str:
        """Return names, quoted, as a list."""
        return ", ".join(map(self.name, names))

    def table(self, table: Table) -> str:
        """Return a table's name, quoted, with its schema."""
        return ".".join(self.name(part) for part in (table.schema, table.name) if part)

    def newest(self, layout: Layout) -> str:
        """Return the staged rows that count: the last one of each key."""
        by = f"PARTITION BY {self.names(layout.key)} ORDER BY {self.name(ORDER)} DESC"
        ranked = f"SELECT s.*, ROW_NUMBER() OVER ({by}) AS {_RANK} FROM {self.name(STAGED)} AS s"  # noqa: S608
        return f"SELECT * FROM ({ranked}) AS r WHERE {_RANK} = 1"  # noqa: S608

    def kept(self, layout: Layout) -> str:
        """Return the condition of staged rows that are to stay."""
        return f"NOT n.{self.name(GONE)}" if layout.deletes else "1 = 1"

    def same(self, layout: Layout) -> str:
        """Return the condition of a row `t` of the table that has the key of a staged row `n`."""
        return " AND ".join(f"t.{self.name(name)} = n.{self.name(name)}" for name in layout.key)

    def upsert(self, layout: Layout) -> str:
        """Return the insertion of what is to stay, up to what to do about rows that are there."""
        names = self.names(layout.names)
        kept = self.kept(layout)
        into = f"INSERT INTO {self.table(layout.table)} ({names})"
        return f"{into} SELECT {names} FROM ({self.newest(layout)}) AS n WHERE {kept}"  # noqa: S608


MARKS_COLUMNS = (
    "epoch BIGINT NOT NULL, batch BIGINT NOT NULL, part BIGINT NOT NULL, ranges LONGTEXT, "
    "written_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (pipeline, target)"
)
