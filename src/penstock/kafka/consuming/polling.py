"""Taking records from a consumer: one, a batch, a table; each wait can be ended from another thread."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, Message

from penstock.config import ConnectionLike
from penstock.errors import FormatError, NoMessageError, PenstockError, WakeupError, missing_extra
from penstock.formats import Format, find_format
from penstock.kafka.consuming.bounds import at_least_one, deadline_of
from penstock.kafka.consuming.decoding import decode_all
from penstock.kafka.consuming.membership import Membership
from penstock.kafka.errors import translate
from penstock.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

# A wait is cut into pieces of this many seconds: so long a wakeup takes at most.
_SLICE = 0.1
_MOST = 1000
_FEW = 100
# librdkafka's binding takes no more at once.
_LARGEST = 1_000_000
# librdkafka heals these by itself; the records come when the broker is back.
_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})


class Polling(Membership):
    """The part of a consumer that hands records out."""

    def __init__(
        self,
        connection: ConnectionLike,
        group: str | None = None,
        *,
        format: str | Format | None = None,
        key_format: str | Format | None = None,
        timeout_ms: int = 1000,
        **options: Any,
    ) -> None:
        super().__init__(connection, group, **options)
        self.timeout_ms = timeout_ms
        self._format = None if format is None else find_format(format)
        self._key_format = None if key_format is None else find_format(key_format)
        self._heard = time.monotonic()
        self._problem: PenstockError | None = None

    def poll(
        self,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> Record | None:
        """The next record, or None when none came in time; a negative time-out waits for ever."""
        records = self.poll_batch(1, timeout_ms, format)
        return records[0] if records else None

    def poll_batch(
        self,
        most: int | None = None,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> list[Record]:
        """Up to `most` records (max.poll.records, else 1000); fewer, or none, when the time is up.

        A value that does not decode is an `error` of its record.
        """
        read = self.reader(format)
        return read(self.fetch(most, timeout_ms))

    def poll_table(self, most: int = 10_000, timeout_ms: int | None = None) -> pa.Table:
        """Up to `most` records as one Arrow table.

        Columns: key, value, topic, partition, offset, timestamp, headers.
        """
        make = self.table_maker()
        return make(self.fetch(most, timeout_ms))

    def poll_mapping(
        self,
        most: int | None = None,
        timeout_ms: int | None = None,
        format: str | Format | None = None,
    ) -> dict[Any, Any]:
        """A batch as key -> value; of records with the same key the last one counts.

        One record that does not decode is raised: a mapping has no place for its error.
        """
        return mapping_of(self.poll_batch(most, timeout_ms, format))

    def poll_value(self, timeout_ms: int | None = None) -> bytes | None:
        """The bytes of the next record's value, as they are; None when none came in time."""
        messages = self.fetch(1, timeout_ms)
        return messages[0].value() if messages else None

    def read(
        self,
        timeout_ms: int = -1,
        format: str | Format | None = None,
    ) -> Record:
        """The next record, or `NoMessageError` when none came in time; -1 waits for ever."""
        while True:
            record = self.poll(timeout_ms if timeout_ms >= 0 else self.timeout_ms, format)
            if record is not None:
                return record
            if timeout_ms >= 0:
                raise NoMessageError(f"no message came within {timeout_ms} ms")

    def __iter__(self) -> Iterator[Record]:
        """Records for ever; `wakeup` ends the loop."""
        while True:
            try:
                record = self.poll()
            except WakeupError:
                return
            if record is not None:
                yield record

    @property
    def most(self) -> int:
        """How many records a batch has at most, where the caller does not say."""
        return self.connection.max_poll_records or _MOST

    def reader(self, format: str | Format | None = None) -> Callable[[list[Message]], list[Record]]:
        """What makes records of messages; asked for first, so that a wrong format costs no record."""
        wanted = self._format if format is None else find_format(format)
        if wanted is None and self._key_format is None:
            return lambda messages: list(map(Record, messages))
        return lambda messages: decode_all(messages, wanted, self._key_format)

    @staticmethod
    def table_maker() -> Callable[[list[Message]], pa.Table]:
        """What makes a table of messages; asked for first, so that a missing extra costs no record."""
        try:
            from penstock.kafka.consuming.arrow import table_of  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "records as a table") from missing
        return table_of

    def fetch(self, most: int | None, timeout_ms: int | None) -> list[Message]:
        """Up to `most` messages, waiting until there are so many or the time is up."""
        wanted, deadline = self.how_many(most), self.deadline(timeout_ms)
        self.raise_if_woken()
        self.store_handed_out()
        while (lacking := wanted - len(self.ahead.messages)) > 0:
            left = deadline - time.monotonic()
            self.gather(lacking, min(max(left, 0), _SLICE))
            if time.monotonic() >= deadline:
                break
        return self.hand_out(wanted)

    def hand_out(self, most: int) -> list[Message]:
        """The oldest messages that wait: from now on they are the caller's."""
        found = self.ahead.hand_out(most)
        if self.keeps_place:
            self.handed.note(found)
        return found

    def how_many(self, most: int | None) -> int:
        """The most records of a batch, given or not."""
        return self.most if most is None else at_least_one(most)

    def deadline(self, timeout_ms: int | None) -> float:
        """When a wait ends; a negative time-out is for ever."""
        return deadline_of(self.timeout_ms if timeout_ms is None else timeout_ms)

    def gather(self, most: int, wait: float) -> int:
        """Take messages once, to be handed out later; how many came."""
        take = self.take if self._queues is None else self._queues.take
        came = take(most, wait)
        self.ahead.messages += came
        return len(came)

    def take(self, most: int, wait: float) -> list[Message]:
        """Ask librdkafka once, for at most a slice of time; see to its events."""
        self.raise_if_woken()
        self._raise_problem()
        with self._handle.translated("reading records"):
            messages = self._consume(most, wait)
        if not messages:
            self._raise_problem()
            self._handle.raise_refusal("reading records")
            return messages
        self._heard = time.monotonic()
        if self._ended or any(map(Message.error, messages)):
            messages = [message for message in messages if self._is_record(message)]
            if not messages:
                self._raise_problem()
        if messages:
            # Whatever was wrong with the connection, it works.
            self._handle.seen.clear()
        return messages

    def _consume(self, most: int, wait: float) -> list[Message]:
        """Let librdkafka make its messages, without the garbage collector looking at them.

        Each is an object that the collector counts: a batch of thousands makes it run again and again,
        over objects that are all in use, and that takes longer than making them.
        """
        collects = most > _FEW and gc.isenabled()
        if collects:
            gc.disable()
        try:
            messages: list[Message] = self._client.consume(min(most, _LARGEST), wait)
        finally:
            if collects:
                gc.enable()
        return messages

    def raise_if_woken(self) -> None:
        """Raise once when another thread called `wakeup`."""
        if self._woken.is_set():
            self._woken.clear()
            raise WakeupError("another thread called wakeup(): this poll ends here")

    def raise_if_away(self, patience: float = 10.0) -> None:
        """Raise when the brokers have been unreachable, and silent for `patience` seconds."""
        if not self._handle.seen or time.monotonic() - self._heard < patience:
            return
        error = self._handle.seen[-1]
        raise translate(error, "reading records", self._handle.brokers, self._handle.seen)

    def _is_record(self, message: Message) -> bool:
        error, place = message.error(), (str(message.topic()), int(message.partition() or 0))
        if error is None:
            self._ended.discard(place)
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended.add(place)
            return False
        if not error.retriable() and error.code() not in _PASSING:
            # Records that came with it must not go under: it is raised when they are in safety.
            self._problem = self._handle.translate(error, "reading records")
        return False

    def _raise_problem(self) -> None:
        self.callbacks.raise_kept()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem


def mapping_of(records: list[Record]) -> dict[Any, Any]:
    """Records as key -> value; the first error among them is raised."""
    for record in records:
        if record.error is not None:
            raise record.error
    try:
        return {record.key: record.value for record in records}
    except TypeError as problem:
        raise FormatError(
            f"a key cannot be one of a mapping: {problem}; use poll_batch"
        ) from problem
