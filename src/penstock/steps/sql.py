"""A step in SQL: the rows so far are the table `rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from pydantic import Field, field_validator
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError

from penstock.pipeline import ORIGIN, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "rows"


class SqlStep(Step):
    """One SELECT of Spark SQL over the table `rows`."""

    name = "sql"
    main_option = "query"
    in_java = True

    query: str = Field(description="A SELECT; the rows so far are the table `rows`.")

    @field_validator("query")
    @classmethod
    def _is_one_select(cls, query: str) -> str:
        try:
            statements = [found for found in sqlglot.parse(query, read="spark") if found]
        except SqlglotError as error:
            raise ValueError(f"not SQL: {_reason(error)}") from None
        if len(statements) != 1 or not isinstance(statements[0], sql.Query):
            raise ValueError("a step is one SELECT, as in 'SELECT * FROM rows WHERE price > 0'")
        _refuse_other_tables(statements[0])
        return query

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return what the query selects."""
        # The view lives in the batch's own session: two pipelines never see each other's rows.
        return self._selected(rows, self.query)

    def mixes(self) -> str | None:
        """Name the part of the query for which Spark must see several rows."""
        select = sqlglot.parse_one(self.query, read="spark")
        if not isinstance(select, sql.Select):
            return f"it is a {select.key.upper()}"
        for part, words in _MIXING.items():
            if select.args.get(part):
                return f"it has {words}"
        for kind, words in _MIXING_BELOW.items():
            if found := select.find(kind):
                return f"it has {words}: {found.sql('spark')}"
        return None

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return what the query selects, and the origin."""
        select = sqlglot.parse_one(self.query, read="spark")
        if not isinstance(select, sql.Select):
            return self.apply(rows)
        everything = any(isinstance(column, sql.Star) for column in select.expressions)
        more = select if everything else select.select(*ORIGIN, append=True)
        return self._selected(rows, more.sql("spark"))

    @staticmethod
    def _selected(rows: DataFrame, query: str) -> DataFrame:
        rows.createOrReplaceTempView(TABLE)
        return rows.sparkSession.sql(query)


_MIXING = {
    "with_": "a WITH",
    "with": "a WITH",
    "distinct": "DISTINCT",
    "joins": "a JOIN",
    "group": "GROUP BY",
    "having": "HAVING",
    "windows": "a window",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "distribute": "DISTRIBUTE BY",
    "cluster": "CLUSTER BY",
    "limit": "a LIMIT",
    "offset": "an OFFSET",
}
_MIXING_BELOW = {
    sql.Window: "a window",
    sql.AggFunc: "an aggregate",
    sql.Subquery: "a subquery",
    sql.Exists: "a subquery",
}


def _refuse_other_tables(select: sql.Query) -> None:
    known = {TABLE} | {cte.alias_or_name.lower() for cte in select.find_all(sql.CTE)}
    for table in select.find_all(sql.Table):
        if isinstance(table.this, sql.Identifier) and (table.db or table.name.lower() not in known):
            raise ValueError(f"there is no table {table.sql()!r}; the rows so far are {TABLE!r}")


def _reason(error: SqlglotError) -> str:
    found = getattr(error, "errors", None)
    if not found:
        return str(error)
    return f"line {found[0]['line']}, near {found[0]['highlight']!r}: {found[0]['description']}"
