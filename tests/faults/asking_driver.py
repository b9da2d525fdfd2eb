"""Asks one Admin from several threads while topics come and go; ends with 0 if it is alive then."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from penstock import Admin
from penstock.errors import PenstockError
from penstock.kafka import GroupOffsets


def main(brokers: str, prefix: str, rounds: int) -> None:
    """Delete and make topics so many times, and ask all the while."""
    names = [f"{prefix}-{number}" for number in range(4)]
    partitions = [(name, number) for name in names for number in range(3)]
    over = Event()

    def on_and_on(question: Callable[[], object]) -> None:
        while not over.is_set():
            with suppress(PenstockError):
                question()

    with (
        Admin(brokers) as admin,
        Admin(brokers) as changing,
        GroupOffsets(brokers, prefix) as group,
    ):
        for name in names:
            changing.create_topic(name, 2)
        questions = [
            lambda: admin.latest(random.sample(partitions, 3)),
            lambda: admin.latest(admin.existing(partitions)),
            lambda: admin.topic_ids(names),
            lambda: group.committed(partitions),
        ]
        asking = [Thread(target=on_and_on, args=(question,)) for question in questions]
        for thread in asking:
            thread.start()
        for _ in range(rounds):
            name = random.choice(names)
            with suppress(PenstockError):
                changing.delete_topic(name)
            with suppress(PenstockError):
                changing.create_topic(name, random.randint(1, 3))
        over.set()
        for thread in asking:
            thread.join()
        print("alive")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
