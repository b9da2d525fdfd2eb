"""SQL over tables of this process: DuckDB reads the Arrow tables where they are, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, missing_extra

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.sinks.memory.table import MemoryTable


def query(select: str, tables: Mapping[str, MemoryTable]) -> pa.Table:
    """Run one SELECT over the tables that it names."""
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "SQL over memory tables") from missing
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as database:
        try:
            _require_select(duckdb, database.extract_statements(select), select)
            for name, rows in _named_in(select, tables).items():
                database.register(name, rows)
            return database.sql(select).to_arrow_table()
        except duckdb.Error as error:
            raise ConfigError(f"the query cannot be run: {error}") from None


def _named_in(select: str, tables: Mapping[str, MemoryTable]) -> dict[str, pa.Table]:
    """The tables whose names stand in the text, so that no others are made ready for nothing."""
    text = select.lower()
    found = {name: each.to_arrow() for name, each in tables.items() if name.lower() in text}
    return {name: rows for name, rows in found.items() if rows.num_columns}


def _require_select(duckdb: Any, statements: list[Any], given: str) -> None:
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        raise ConfigError(
            f"memory tables can only be read, with one SELECT; given: {given!r}. What fills them is a "
            "pipeline with the sink 'memory'"
        )
