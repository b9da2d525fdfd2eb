"""The deliveries of a producer that failed: counted, and kept until somebody has been told."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from penstock.errors import FencedError, PenstockError, TerminalError, TransientError
from penstock.kafka.handle import Handle

# What is raised names the first one; more are kept for whoever looks, but not without end.
_KEPT = 100


class Failures:
    """What was not delivered: `count` of all, `errors` of those that nobody was told of yet."""

    def __init__(self, handle: Handle) -> None:
        self.count = 0
        self.errors: list[PenstockError] = []
        self._untold = 0
        self._handle = handle

    def keep(self, error: KafkaError, message: Message) -> PenstockError:
        """Keep a failure for the next `raise_untold`."""
        problem = self.note(error, message)
        self._untold += 1
        if len(self.errors) < _KEPT:
            self.errors.append(problem)
        return problem

    def note(self, error: KafkaError, message: Message) -> PenstockError:
        """Count a failure of which somebody is told in another way."""
        self.count += 1
        return self.translated(error, f"writing to topic {message.topic()!r}")

    def translated(self, error: KafkaError, doing: str) -> PenstockError:
        """The error in our words."""
        return self._handle.translate(error, doing)

    def told(self, error: PenstockError) -> None:
        """Somebody waited for this one, and was told."""
        if any(error is each for each in self.errors):
            self.errors = [each for each in self.errors if each is not error]
            self._untold -= 1

    def forget(self) -> None:
        """Drop what nobody was told of."""
        self.errors, self._untold = [], 0

    def raise_untold(self) -> None:
        """Raise once for all failures since the last time, with their number and the first reason."""
        if not self.errors:
            return
        first, count = self.errors[0], self._untold
        self.forget()
        kinds = (TransientError, FencedError, TerminalError)
        kind = next((each for each in kinds if isinstance(first, each)), TerminalError)
        raise kind(f"{count} records were not delivered; the first: {first}") from first
