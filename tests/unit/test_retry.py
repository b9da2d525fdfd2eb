"""Trying again and waiting: when it ends, and with what."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from penstock.retry import backoff, retry, wait_for


def failing(times: int) -> Callable[[], str]:
    left = iter(range(times))

    def call() -> str:
        if next(left, None) is not None:
            raise ConnectionError(f"{times}")
        return "done"

    return call


def test_a_call_is_tried_until_it_succeeds() -> None:
    assert retry(failing(3), lambda _: 0.0, within=10) == "done"


def test_an_error_that_is_final_is_raised_at_once() -> None:
    asked: list[Exception] = []
    with pytest.raises(ConnectionError):
        retry(failing(9), asked.append, within=10)
    assert len(asked) == 1


def test_the_last_error_is_raised_when_the_time_is_over() -> None:
    began = monotonic()
    with pytest.raises(ConnectionError):
        retry(failing(10**9), lambda _: 0.01, within=0.05)
    assert 0.03 < monotonic() - began < 60


def test_a_pause_that_ends_after_the_deadline_is_not_begun() -> None:
    began = monotonic()
    with pytest.raises(ConnectionError):
        retry(failing(9), lambda _: 600.0, within=100)
    assert monotonic() - began < 100


def test_an_interrupt_is_not_an_error_to_try_again_after() -> None:
    def call() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retry(call, lambda _: 0.0, within=10)


def test_waiting_returns_the_first_value_that_is_accepted() -> None:
    values = iter(range(10))
    assert wait_for(lambda: next(values), lambda value: value > 3, within=10, every=0) == 4


def test_waiting_returns_the_last_value_when_the_time_is_over() -> None:
    assert wait_for(lambda: 0, within=0.02, every=0.01) == 0


def test_a_condition_is_asked_once_without_any_time() -> None:
    assert wait_for(lambda: "now", within=0, every=60) == "now"


def test_pauses_grow_and_end_one_before_the_tries() -> None:
    pauses = list(backoff(0.1, tries=4))
    assert [0.5 <= pause / (0.1 * 2**n) <= 1.5 for n, pause in enumerate(pauses)] == [True] * 3
