"""SQL over tables of this process: DuckDB reads the Arrow tables where they are, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, missing_extra

if TYPE_CHECKING:
    import pyarrow as pa


def query(select: str, tables: Callable[[set[str]], dict[str, pa.Table]]) -> pa.Table:
    """Run one SELECT; `tables` gives the tables that it names, as far as they are there."""
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "SQL over memory tables") from missing
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as database:
        try:
            _require_select(duckdb, database.extract_statements(select), select)
            for name, rows in tables(database.get_table_names(select)).items():
                if rows.num_columns:
                    database.register(name, rows)
            return database.sql(select).to_arrow_table()
        except duckdb.Error as error:
            raise ConfigError(f"the query cannot be run: {error}") from None


def _require_select(duckdb: Any, statements: list[Any], given: str) -> None:
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        raise ConfigError(
            f"memory tables can only be read, with one SELECT; given: {given!r}. What fills them is a "
            "pipeline with the sink 'memory'"
        )
