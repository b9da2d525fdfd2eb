"""Rounds are reported once each, also after the store was away."""

from __future__ import annotations

import pytest

from penstock.engine import Done
from penstock.errors import FencedError, TransientError
from penstock.imports.round_report import RoundReport
from penstock.pipeline import Mark


def done(records: int) -> Done:
    return Done(Mark(0, 0, 0), records, records, failed=1, seconds=1.0)


def test_what_a_store_could_not_take_is_in_the_next_report() -> None:
    taken: list[Done] = []
    away = [False, True, True, False, False]

    def count(one: Done) -> None:
        if away.pop(0):
            raise TransientError("the store is away")
        taken.append(one)

    report = RoundReport(count, token=7)
    for records in (1, 2, 4, 8, 16):
        report.add(done(records))
    assert [(each.mark.batch, each.records, each.failed) for each in taken] == [
        (0, 1, 1),
        (1, 14, 3),
        (2, 16, 1),
    ]


def test_a_process_without_its_lease_gets_the_error() -> None:
    def refuse(_: Done) -> None:
        raise FencedError("another worker has the lease")

    with pytest.raises(FencedError):
        RoundReport(refuse, token=7).add(done(1))
    RoundReport(None, token=7).add(done(1))
