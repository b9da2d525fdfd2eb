"""Penstock answers the requests of Connect's API as a distributed worker of Apache Kafka Connect does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.contract.connect_rest.all_cases import AREAS, CASES, COUNT
from tests.contract.connect_rest.known_differences import DIFFERENCES, difference_of
from tests.contract.connect_rest.rest_case import Reply, compared

PAGE = Path(__file__).parents[3] / "docs" / "connect.md"
Replies = dict[str, Reply]


def difference(name: str, ours: Replies, theirs: Replies) -> str | None:
    """What is wrong with the reply to a request; nothing where it is as expected."""
    known = difference_of(name)
    here, there = compared(CASES[name], ours[name]), compared(CASES[name], theirs[name])
    if known is None:
        return None if here == there else f"here {here}, in Connect {there}"
    return f"equal now: take it out of {known!r}, and count again" if here == there else None


@pytest.mark.parametrize("area", AREAS)
def test_replies_are_those_of_connect(
    area: str, replies_of_connect: Replies, replies_of_penstock: Replies
) -> None:
    names = [case.name for case in AREAS[area]]
    found = {name: difference(name, replies_of_penstock, replies_of_connect) for name in names}
    wrong = [f"{name}: {text}" for name, text in found.items() if text]
    assert not wrong, "\n".join(wrong)


def test_every_request_is_compared(replies_of_penstock: Replies) -> None:
    assert len(replies_of_penstock) == len(CASES) == COUNT


def test_the_differences_and_their_count_are_on_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## Differences")[2]
    for title in DIFFERENCES:
        assert f"- **{title}" in section
    differing = sum(difference_of(name) is not None for name in CASES)
    equal = len(CASES) - differing
    counted = f"{len(CASES)} requests are compared: {equal} equal, {differing} known differences"
    with capsys.disabled():
        print(f"\nConnect's REST API: {counted}")
    found = re.search(r"\d+ requests are compared: \d+ equal, \d+ known differences", page)
    assert found and found[0] == counted
