"""Definitions with steps that keep state: what cannot work is refused when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline
from penstock.pipeline.component import Step
from penstock.steps.sql import SqlStep

WINDOW = {"time": "at", "window": "1m", "values": {"n": "count(*)"}}
FIRST = {"deduplicate": {"by": "id", "time": "at", "within": "1m"}}


def made(*steps: Any, **options: Any) -> Pipeline:
    given = {"name": "p", "source": {"kafka": "t"}, "sink": {"files": "out"}} | options
    return Pipeline(steps=list(steps), **given)


def refusal(*steps: Any, **options: Any) -> str:
    with pytest.raises(DefinitionError) as refused:
        made(*steps, **options)
    return str(refused.value)


def test_both_forms_of_a_list_of_columns_are_the_same() -> None:
    as_text, as_list = (
        made({"aggregate": WINDOW | {"by": by}}).steps[0] for by in ("a, b", ["a", "b"])
    )
    assert as_text == as_list


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"window": None}, "give either 'window' or 'session'"),
        ({"session": "1m"}, "give either 'window' or 'session'"),
        ({"slide": "2m"}, "'slide' is for a 'window', and not longer than it"),
        ({"window": None, "session": "1m", "emit": "changes"}, "leave 'emit' out"),
        ({"values": {"n": "size"}}, "n: 'size' is not an aggregate such as 'sum(size)'"),
        ({"values": {"n": "sum(("}}, "n: 'sum((' is not SQL"),
        ({"values": {"window_end": "max(x)"}}, "'window_end' would be there twice"),
        ({"values": {}}, "aggregate.values"),
        ({"window": "soon"}, "given 'soon'; a duration is a number with ms, s, m, h or d"),
    ],
)
def test_a_window_that_cannot_be_is_refused(change: dict[str, Any], said: str) -> None:
    assert said in refusal({"aggregate": WINDOW | change})


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT a, count(*) FROM rows GROUP BY a", "it has GROUP BY"),
        ("SELECT count(*) AS n FROM rows", "it has an aggregate"),
        ("SELECT DISTINCT a FROM rows", "it has DISTINCT"),
        ("SELECT * FROM rows ORDER BY a", "it has ORDER BY"),
        ("SELECT * FROM rows LIMIT 3", "it has a LIMIT"),
        ("SELECT a, lag(a) OVER (ORDER BY b) AS c FROM rows", "it has a window"),
        ("SELECT r.a FROM rows r JOIN rows s ON r.a = s.a", "it has a JOIN"),
        ("WITH x AS (SELECT * FROM rows) SELECT * FROM x", "it has a WITH"),
        ("SELECT a FROM rows WHERE a IN (SELECT b FROM rows)", "it has a subquery"),
        ("SELECT a FROM rows UNION ALL SELECT b FROM rows", "it is a UNION"),
    ],
)
def test_sql_that_mixes_rows_cannot_stand_before_state(query: str, why: str) -> None:
    said = refusal({"sql": query}, {"aggregate": WINDOW})
    assert "steps[0] (sql) comes before a step that keeps state" in said
    assert why in said
    assert "put it after steps[1]" in said
    made({"aggregate": WINDOW}, {"sql": query})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM rows",
        "SELECT upper(a) AS a, explode(b) AS b FROM rows WHERE c > 1 AND a IN ('x', 'y')",
        "SELECT from_json(value, 'a int').a FROM rows r WHERE r.a IS NOT NULL",
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS z FROM rows LATERAL VIEW explode(b) t AS c",
    ],
)
def test_sql_that_takes_each_row_by_itself_may(query: str) -> None:
    assert SqlStep(query=query).mixes() is None
    made({"sql": query}, {"aggregate": WINDOW})


def test_steps_that_keep_state_go_by_one_time_and_the_last_may_sum_up() -> None:
    made(FIRST, {"aggregate": WINDOW})
    assert "goes by 'at', and another step before by 'other'" in refusal(
        {"deduplicate": FIRST["deduplicate"] | {"time": "other"}}, {"aggregate": WINDOW}
    )
    assert "no step that keeps state can come after it" in refusal({"aggregate": WINDOW}, FIRST)


def test_the_other_side_of_a_join_keeps_no_state_of_its_own() -> None:
    join = {"source": {"kafka": "u"}, "by": "id", "time": "at", "steps": [FIRST]}
    assert (
        "steps[0] (join).steps[0] (deduplicate) must process rows independently: it keeps state"
        in (refusal({"join": join}))
    )


def test_state_and_at_most_once_do_not_go_together() -> None:
    said = refusal(FIRST, delivery="at-most-once")
    assert "'deduplicate' keeps state, of which at-most-once would lose" in said


def test_a_step_that_does_not_say_how_it_works_is_not_trusted() -> None:
    class Silent(Step):
        name = "silent"

        def apply(self, rows: Any) -> Any:
            return rows

    assert "does not declare that it processes rows independently" in refusal(Silent(), FIRST)
