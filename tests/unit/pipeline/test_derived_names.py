"""No pipeline has a name, a group or a topic that is derived from the name of another."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.pipeline import Pipeline


def made(**options: Any) -> Pipeline:
    defaults: dict[str, Any] = {"name": "orders", "source": {"kafka": "t"}, "sink": "discard"}
    return Pipeline(**(defaults | options))


@pytest.mark.parametrize("option", ["name", "group"])
@pytest.mark.parametrize(
    "given",
    [
        "x.sink",
        "x.dead-letters",
        "x.dead-letters.sink",
        "x.sink.orders-0",
        "x.dead-letters.sink.orders-0",
        "x.y.sink",
    ],
)
def test_a_name_that_is_derived_from_another_pipeline_is_refused_with_what_to_do(
    option: str, given: str
) -> None:
    with pytest.raises(DefinitionError, match=f"{option}: given '{given}'.* choose another"):
        made(**{option: given})


@pytest.mark.parametrize(
    "given", ["sink", "sink.orders", "x-sink", "x.sinks", "dead-letters", "x.y"]
)
def test_other_names_are_free(given: str) -> None:
    assert made(name=given).group_id == given


def test_a_name_with_the_sign_of_replays_is_refused() -> None:
    with pytest.raises(DefinitionError, match="name: given 'x~replay'"):
        made(name="x~replay")


@pytest.mark.parametrize(
    ("source", "letters"),
    [
        ({"kafka": "orders.dead-letters"}, None),
        ({"kafka": ["t", "bad"]}, "bad"),
        ({"kafka": {"pattern": "orders.*"}}, None),
    ],
)
def test_a_pipeline_that_would_read_its_own_dead_letters_is_refused(
    source: Any, letters: str | None
) -> None:
    with pytest.raises(DefinitionError, match="would come back forever"):
        made(source=source, dead_letters=letters)
    assert made(source=source, dead_letters="elsewhere").dead_letters is not None


def test_a_pattern_of_topics_cannot_hold_up_the_check() -> None:
    # Python's own regular expressions would need 2**60 steps.
    assert made(source={"kafka": {"pattern": "^(a+)+$"}}, dead_letters="a" * 60 + "-bad")
