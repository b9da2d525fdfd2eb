"""What a definition with an import means, and which ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.imports.import_plan import import_plan
from penstock.pipeline import Pipeline


def plan_of(source: dict[str, Any] | None = None, **more: Any) -> tuple[str, bool]:
    """Return the topic that is filled, and whether a pipeline is behind it."""
    files = {"files": {"folder": "x", **(source or {})}}
    plan = import_plan(Pipeline(**{"name": "p", "source": files, "sink": {"kafka": "out"}} | more))
    assert plan is not None
    return plan.source.topic, plan.behind is not None


def test_a_plain_topic_is_filled_by_the_import_alone() -> None:
    assert plan_of() == ("out", False)
    assert plan_of({"topic": "out"}) == ("out", False)


def test_everything_else_is_a_pipeline_behind_its_topic() -> None:
    assert plan_of(decode="text") == ("p.in", True)
    assert plan_of(steps=[{"sql": "SELECT * FROM rows"}]) == ("p.in", True)
    assert plan_of(sink={"console": None}) == ("p.in", True)
    assert plan_of(sink={"kafka": {"topic": "out", "key": "key"}}) == ("p.in", True)


def test_records_that_are_kept_in_a_topic_of_their_own_still_go_to_the_sink() -> None:
    assert plan_of({"topic": "raw"}) == ("raw", True)


def test_a_pipeline_over_kafka_has_no_import() -> None:
    assert import_plan(Pipeline(name="p", source={"kafka": "t"}, sink={"kafka": "u"})) is None


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ({}, {"sink": {"kafka": "penstock-positions"}}, "records cannot be imported into"),
        ({}, {"sink": {"kafka": "p.dead-letters"}}, "records cannot be imported into"),
        ({"topic": "penstock-positions"}, {}, "records cannot be imported into"),
        ({}, {"sink": {"console": None}, "commit": False}, "would grow without end"),
        (
            {"topic": "logs.{file}"},
            {"sink": {"kafka": "logs.out"}, "decode": "text"},
            "the sink writes to 'logs.out', which the import's topic 'logs.{file}' stands for",
        ),
        (
            {"topic": "p.{file}"},
            {"sink": {"console": None}},
            "the source reads the topic 'p.dead-letters', to which dead letters go",
        ),
    ],
)
def test_an_import_that_would_read_or_break_what_it_writes_is_refused(
    source: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        plan_of(source, **more)
    assert message in str(caught.value)


def test_a_reserved_name_is_named() -> None:
    with pytest.raises(DefinitionError, match=r"given 'a\.sink': this name .* of a pipeline 'a'"):
        Pipeline(name="a.sink", source={"kafka": "t"}, sink={"kafka": "u"})
