"""A step in SQL: the rows so far are the table `rows`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sqlglot
from pydantic import Field, ValidationInfo, field_validator
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError

from penstock.pipeline import ORIGIN, BoundStep, Step
from penstock.pipeline.safe_sql import refusal, refuse_unsafe, unsafe_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "rows"


class SqlStep(Step):
    """One SELECT of Spark SQL over the table `rows`.

    It shapes rows. What runs code or reads files is refused: TRANSFORM, `reflect`, `java_method`, tables
    given by a path. `unsafe: true` allows it.
    """

    name = "sql"
    main_option = "query"
    in_java = True

    # Before the query, whose check depends on it.
    unsafe: bool = Field(
        default=False, description="Whether the query may run code and read files and other tables."
    )
    query: str = Field(description="A SELECT; the rows so far are the table `rows`.")

    @field_validator("query")
    @classmethod
    def _is_one_select(cls, query: str, info: ValidationInfo) -> str:
        try:
            statements = [parsed for parsed in sqlglot.parse(query, read="spark") if parsed]
        except SqlglotError as error:
            raise ValueError(f"not SQL: {_reason(error)}") from None
        except RecursionError:
            raise ValueError("the query is nested too deeply; write it with fewer levels") from None
        if len(statements) != 1 or not isinstance(statements[0], sql.Query):
            raise ValueError("a step is one SELECT, as in 'SELECT * FROM rows WHERE price > 0'")
        if not info.data.get("unsafe"):
            _refuse_other_tables(statements[0])
            if part := unsafe_part(statements[0]):
                raise ValueError(refusal(part))
        return query

    def bind(self) -> SelectedRows:
        """Return the query as a run has it."""
        return SelectedRows(self)

    @property
    def traces_in_bulk(self) -> bool:
        """Return whether each row comes of one row: its origin is one more column then."""
        return self.mixes() is None

    def mixes(self) -> str | None:
        """Name the part of the query for which Spark must see several rows."""
        select = sqlglot.parse_one(self.query, read="spark")
        if not isinstance(select, sql.Select):
            return f"it is a {select.key.upper()}"
        for part, words in _MIXING.items():
            if select.args.get(part):
                return f"it has {words}"
        for kind, words in _MIXING_BELOW.items():
            if expression := select.find(kind):
                return f"it has {words}: {expression.sql('spark')}"
        return None


class SelectedRows(BoundStep):
    """What the query selects; Spark's own parser looks at it once, not with each batch."""

    step: SqlStep

    def __init__(self, step: SqlStep) -> None:
        super().__init__(step)
        self._checked: set[str] = set()

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return what the query selects."""
        return self._selected(rows, self.step.query)

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return what the query selects, and the origin."""
        select = sqlglot.parse_one(self.step.query, read="spark")
        if not isinstance(select, sql.Select):
            return self.apply(rows)
        stars = list(_stars_of_the_table(select))
        everything = any(_is_selected(star, select) for star in stars)
        for star in stars:
            if not _is_selected(star, select):
                _leave_origin_out(star)
        more = select if everything else select.select(*ORIGIN, append=True)
        return self._selected(rows, more.sql("spark"))

    def _selected(self, rows: DataFrame, query: str) -> DataFrame:
        # The view lives in the batch's own session: two pipelines never see each other's rows.
        rows.createOrReplaceTempView(TABLE)
        if not self.step.unsafe and query not in self._checked:
            refuse_unsafe(rows.sparkSession, query)
            self._checked.add(query)
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


def _stars_of_the_table(select: sql.Select) -> Iterator[sql.Star]:
    """Yield each `*` that means all columns of the table; `column.*` means the fields of a struct.

    Where a column has the table's name, Spark takes the table.
    """
    table = select.args.get("from_") or select.args.get("from")
    name = table.alias_or_name.lower() if table else ""
    for star in select.find_all(sql.Star):
        column = star.parent
        if star.find_ancestor(sql.Select) is not select:
            continue
        if isinstance(column, sql.Column):
            if not column.db and column.table.lower() == name:
                yield star
        elif not isinstance(column, sql.Dot):
            yield star


def _is_selected(star: sql.Star, select: sql.Select) -> bool:
    """Return whether a star is an item of the SELECT, and not an argument of a function."""
    item = star.parent if isinstance(star.parent, sql.Column) else star
    return item.parent is select


def _leave_origin_out(star: sql.Star) -> None:
    """Make `*` in `struct(*)` mean the columns that the query's author knows of."""
    option = next(name for name in ("except_", "except") if name in sql.Star.arg_types)
    star.set(option, [*(star.args.get(option) or ()), *map(sql.column, ORIGIN)])


def _refuse_other_tables(select: sql.Query) -> None:
    known = {TABLE} | {cte.alias_or_name.lower() for cte in select.find_all(sql.CTE)}
    for table in select.find_all(sql.Table):
        if isinstance(table.this, sql.Identifier) and (table.db or table.name.lower() not in known):
            raise ValueError(f"there is no table {table.sql()!r}; the rows so far are {TABLE!r}")


def _reason(error: SqlglotError) -> str:
    errors = getattr(error, "errors", None)
    if not errors:
        return str(error)
    return f"line {errors[0]['line']}, near {errors[0]['highlight']!r}: {errors[0]['description']}"
