"""The step `sql`: what Spark makes of its queries where rows carry the record that they are of."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.pipeline import ORIGIN
from penstock.steps.sql import SqlStep


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """One row, of the record at offset 7."""
    origin = ("'t' AS {}", "1 AS {}", "7 AS {}")
    hidden = ", ".join(text.format(name) for text, name in zip(origin, ORIGIN, strict=True))
    return spark.sql(f"SELECT 5 AS n, named_struct('id', 6) AS payload, array(1) AS list, {hidden}")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM rows", ["n", "payload", "list"]),
        ("SELECT Rows.* FROM rows", ["n", "payload", "list"]),
        ("SELECT r.*, 1 AS one FROM rows AS R", ["n", "payload", "list", "one"]),
        ("SELECT * EXCEPT (n, list) FROM rows", ["payload"]),
        ("SELECT payload.* FROM rows", ["id"]),
        ("SELECT rows.payload.* FROM rows", ["id"]),
        ("SELECT n, payload.* FROM rows r", ["n", "id"]),
        ("SELECT rows.* FROM (SELECT payload AS rows, * FROM rows) r", ["id"]),
        ("SELECT t.* FROM rows LATERAL VIEW explode(list) t AS one", ["one"]),
    ],
)
def test_rows_have_their_origin_once_whatever_a_star_stands_for(
    rows: Any, query: str, columns: list[str]
) -> None:
    traced = SqlStep(query=query).bind().traced(rows)

    assert sorted(traced.columns) == sorted([*columns, *ORIGIN])
    assert [traced.first()[name] for name in ORIGIN] == ["t", 1, 7]


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        ("to_json(struct(*))", '{"n":5,"payload":{"id":6},"list":[1]}'),
        ("to_json(struct(rows.*))", '{"n":5,"payload":{"id":6},"list":[1]}'),
        ("to_json(struct(* EXCEPT (n, payload.id)))", '{"payload":{},"list":[1]}'),
        ("to_json(struct(payload.*))", '{"id":6}'),
        ("concat_ws(',', * EXCEPT (payload, list))", "5"),
        ("size(array(* EXCEPT (payload, list)))", 1),
    ],
)
def test_a_function_of_all_columns_gets_none_that_the_engine_adds(
    rows: Any, expression: str, made: object
) -> None:
    step = SqlStep(query=f"SELECT {expression} AS made FROM rows")
    traced = step.bind().traced(rows)

    assert step.traces_in_bulk
    assert traced.columns == ["made", *ORIGIN]
    assert tuple(traced.first()) == (made, "t", 1, 7)
    assert step.bind().apply(rows.drop(*ORIGIN)).first().made == made


def test_a_star_in_parentheses_is_all_columns_and_the_origin_is_there_once(rows: Any) -> None:
    traced = SqlStep(query="SELECT (*), hash(*) AS sum FROM rows").bind().traced(rows)

    assert traced.columns == ["n", "payload", "list", "sum", *ORIGIN]
    expected = rows.selectExpr("hash(n, payload, list) AS sum").first().sum
    assert traced.first().sum == expected
