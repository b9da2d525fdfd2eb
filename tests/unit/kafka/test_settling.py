"""A question is put again while what was asked moves, and only then."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.kafka.bounded import settled


class Answers:
    """Gives errors first, then an answer; counts how often it was asked."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return "answer"


def test_what_moves_is_asked_again() -> None:
    answers = Answers(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)

    assert settled(answers, 60) == "answer"
    assert answers.asked == 3


def test_any_other_error_is_reported_immediately() -> None:
    answers = Answers(KafkaError.GROUP_AUTHORIZATION_FAILED)

    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        settled(answers, 60)
    assert answers.asked == 1


def test_time_ends_the_asking() -> None:
    answers = Answers(*[KafkaError.NOT_COORDINATOR] * 1000)

    with pytest.raises(KafkaException, match="NOT_COORDINATOR"):
        settled(answers, 0.1)
    assert answers.asked < 1000
