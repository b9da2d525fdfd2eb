"""What `produce` returns: wait for it, await it, or ignore it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from penstock.errors import PenstockError, TransientError
from penstock.record import Record, record_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from penstock.kafka.producing.sender import Sender

OnDelivery = Callable[["PenstockError | None", Record], None]
"""Called with one delivery: the error or None, and the record with its partition and offset.

What it raises comes out of the next `poll`, `flush` or `close` of the producer.
"""
Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Receipt(Struct, eq=False, gc=False):
    """One record on its way. librdkafka calls it when the broker has answered.

    There is one for each record, so it is as small as can be: its sender is an attribute of a
    class that the sender makes for itself, and an answer that no one asks for costs nothing more.

    Examples
    --------
    ::

        receipt = producer.produce("trades", "A", "1")
        receipt.result().offset  # waits
        (await receipt).offset  # in a coroutine
    """

    _message: Any = None
    _error: Any = None
    _sender: ClassVar[Sender]
    _waiters: ClassVar[dict[Receipt, list[Waiter]]]

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the answer."""
        if error is not None:
            self._error = self._failed(error, message)
        self._message = message
        if self._waiters:
            for loop, answered in list(self._waiters.pop(self, ())):
                # A loop that has ended has no waiters left.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(answered.set)

    def done(self) -> bool:
        """Return whether the answer has arrived."""
        return self._message is not None

    def result(self, timeout: float | None = None) -> Record:
        """Wait for the answer; return the record with its partition and offset, or raise the error.

        The wait ends by itself after message.timeout.ms; a shorter one is in seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            if deadline is not None and time.monotonic() > deadline:
                raise TransientError(
                    f"no answer from {self._sender.handle.brokers} within {timeout:g} s; "
                    "the record is still on its way: wait longer, or check the broker"
                )
            self._sender.serve_now(0.05)
        return self._outcome()

    def results(self, timeout: float | None = None) -> list[Record]:
        """Wait for every record that the value became: one, or more where it was split."""
        return [self.result(timeout)]

    def __await__(self) -> Generator[Any, None, Record]:
        return self._awaited().__await__()

    async def _awaited(self) -> Record:
        if not self.done():
            await self._answered()
        return self._outcome()

    async def _answered(self) -> None:
        waiter = asyncio.get_running_loop(), asyncio.Event()
        waiters = self._waiters.setdefault(self, [])
        waiters.append(waiter)
        try:
            # Another thread may have taken the answer in, a moment before this waiter was added.
            if not self.done():
                await self._sender.pump.until(waiter[1])
        finally:
            waiters.remove(waiter)

    def _outcome(self) -> Record:
        if self._error is not None:
            self._sender.failures.reported(self._error)
            # A copy: with its traceback the error would hold this receipt, and the receipt the error,
            # forever, because the collector does not look at deliveries.
            raise copy(self._error)
        return Record(self._message)

    def _failed(self, error: KafkaError, message: Message) -> PenstockError:
        return self._sender.failures.keep(error, message)

    def __repr__(self) -> str:
        state = "on its way" if not self.done() else self._error or Record(self._message)
        return f"<Receipt: {state}>"


class ReportedReceipt(Receipt):
    """A receipt with a callback of the user's own, which a failure is reported to."""

    on_delivery: Any = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the answer, and pass it on."""
        Receipt.__call__(self, error, message)
        record = record_of(message, self._error)
        # The callback may hold this receipt, and the collector does not look at receipts.
        on_delivery, self.on_delivery = self.on_delivery, None
        self._sender.callbacks.run(on_delivery, self._error, record)

    def _failed(self, error: KafkaError, message: Message) -> PenstockError:
        return self._sender.failures.note(error, message)


class SplitReceipt(Receipt):
    """The deliveries of one value that went out as several records."""

    parts: Sequence[Receipt] = ()

    def done(self) -> bool:
        """Return whether every answer has arrived."""
        return all(part.done() for part in self.parts)

    def result(self, timeout: float | None = None) -> Record:
        """Wait for all of them; return the last one's record."""
        return self.results(timeout)[-1]

    def results(self, timeout: float | None = None) -> list[Record]:
        """Wait for all of them."""
        return [part.result(timeout) for part in self.parts]

    async def _awaited(self) -> Record:
        return [await part for part in self.parts][-1]

    def __repr__(self) -> str:
        return f"<SplitReceipt of {len(self.parts)}>"
