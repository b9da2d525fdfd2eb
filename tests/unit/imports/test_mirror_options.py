"""Definitions of mirrors that are refused, and what the message says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.imports.import_plan import import_plan
from penstock.imports.mirror.group_translation import Copy
from penstock.imports.mirror.record_limits import batch_size
from penstock.imports.mirror.sync_points import Point, translated, with_point
from penstock.pipeline import Pipeline

EAST = {"brokers": "localhost:1"}


def mirror(source: dict[str, Any], **more: Any) -> Pipeline:
    options = {"cluster": EAST, **source}
    given = {"name": "m", "connection": {"brokers": "localhost:2"}, "sink": {"kafka": "{topic}"}}
    return Pipeline(**(given | {"source": {"mirror": options}} | more))


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ({}, {}, "give either topics or pattern"),
        ({"topics": "a", "pattern": "b"}, {}, "give either topics or pattern"),
        ({"topics": "a", "cluster": None}, {}, "cluster"),
        ({"topics": "a", "cluster": "nowhere"}, {}, "no connection is named 'nowhere'"),
        ({"topics": "a", "cluster": {"broker": "x"}}, {}, "unknown key 'broker': allowed are"),
        ({"topics": "a b"}, {}, "'a b' is not the name of a topic; for several, use 'pattern'"),
        ({"topics": "shop.*"}, {}, "use 'pattern'"),
        ({"topics": "__consumer_offsets"}, {}, "belongs to its cluster, and cannot be mirrored"),
        ({"topics": "penstock-positions"}, {}, "belongs to its cluster, and cannot be mirrored"),
        ({"pattern": "("}, {}, "'(' is not a regular expression"),
        ({"pattern": ".*", "exclude": "["}, {}, "'[' is not a regular expression"),
        ({"topics": "a", "exclude": "b"}, {}, "'exclude' is about 'pattern'"),
        ({"topics": "a", "groups": "g", "group_pattern": "h"}, {}, "give either groups or"),
        ({"topics": "a", "group_pattern": "*"}, {}, "is not a regular expression"),
        ({"topics": "a", "alias": "e/st"}, {}, "'e/st' cannot be in the name of a topic"),
        ({"topics": "a", "on_data_loss": "ignore"}, {}, "'fail' or 'skip'"),
        ({"topics": "a", "follow_every": 0}, {}, "greater than 0"),
        ({"topics": "a", "groups_every": "soon"}, {}, "a duration is a number with"),
        ({"topics": "a", "max_records": 0}, {}, "greater than or equal to 1"),
        (
            {"topics": "a", "topcis": "b"},
            {},
            "topcis: is not an option here; did you mean 'topics'?",
        ),
        ({"topics": "a"}, {"sink": {"kafka": "{cluster}.{topic}"}}, "the cluster has no name"),
        ({"topics": "a"}, {"sink": {"kafka": "{table}"}}, "allowed: {cluster}, {topic}"),
        ({"topics": "a,b"}, {"sink": {"kafka": "all"}}, "all topics would be copied into 'all'"),
        ({"pattern": ".*"}, {"sink": {"kafka": "all"}}, "all topics would be copied into 'all'"),
        ({"topics": "a"}, {"decode": "text"}, "a mirror copies records as they are"),
        ({"topics": "a"}, {"sink": {"console": None}}, "a mirror copies records as they are"),
        ({"topics": "a"}, {"delivery": "at-most-once"}, "cannot promise at-most-once"),
    ],
)
def test_what_is_wrong_is_said(source: dict[str, Any], more: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        mirror(source, **more)
    assert message in str(caught.value)


def test_one_topic_may_get_any_name() -> None:
    plan = import_plan(mirror({"topics": "a"}, sink={"kafka": "b"}))
    assert plan is not None
    assert plan.source.topic == "b"


def test_the_cluster_is_named_like_its_connection() -> None:
    source = mirror({"topics": "a", "alias": "east"}, sink={"kafka": "{cluster}.{topic}"}).source
    assert source.alias == "east"  # type: ignore[attr-defined]


def test_translated_offsets_are_never_after_the_record() -> None:
    dice = random.Random(1)
    for _ in range(200):
        # Where each record of the source is in the target: markers and records of others between.
        at, where = 0, []
        for _ in range(300):
            at += dice.choice([1, 1, 1, 2, 9])
            where.append(at)
        points: list[Point] = []
        offset = 0
        while offset < len(where):
            points = with_point(
                points,
                (offset, dice.randrange(where[offset - 1] + 1, where[offset] + 1) if offset else 0),
            )
            offset += dice.randrange(1, 40)
        assert len(points) <= 12
        for group in range(300):
            target = translated(points, group)
            assert target is not None
            assert target <= where[group]


def test_an_offset_before_all_points_is_read_from_the_start() -> None:
    copy = Copy({"offset": 100, "points": [[50, 60]]}, oldest=3, end=120)
    assert [copy.offset_of(n) for n in (10, 50, 99, 100, 5000)] == [3, 60, 60, 120, 120]


def test_points_after_an_earlier_position_are_forgotten() -> None:
    assert with_point([(0, 0), (10, 10), (20, 20)], (10, 31)) == [(0, 0), (10, 31)]
    # The target was emptied and starts over.
    assert with_point([(0, 0), (10, 10)], (20, 5)) == [(0, 0), (20, 5)]


def test_sizes_are_those_of_a_batch() -> None:
    assert batch_size(0, 0, None) == 61 + 1 + 3 + 1 + 1 + 1
    assert batch_size(0, 2**20, None) - 2**20 == 61 + 4 + 3 + 1 + 4 + 1
