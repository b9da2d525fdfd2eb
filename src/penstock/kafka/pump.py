"""librdkafka in an event loop: polled without waiting, or in a thread that waits to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.kafka.producing.sender import Sender

T = TypeVar("T")

# Short enough that a delivery is known at once, long enough to leave the loop to others.
TICK = 0.002


class Pump:
    """One task that polls the client while records are on their way; it ends by itself.

    librdkafka calls back only when it is polled. Polling without waiting on the loop's own thread
    needs no other thread, and a cancelled waiter loses nothing: the answer is kept by the delivery.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._task: asyncio.Task[None] | None = None

    async def until(self, answered: asyncio.Event) -> None:
        """Wait for an answer."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run())
        await answered.wait()

    async def _run(self) -> None:
        while len(self._sender):
            # A producer that ended still answers for each of its records: those who wait are woken there.
            with suppress(PenstockError):
                self._sender.serve_now()
            await asyncio.sleep(TICK)


async def finish(call: Callable[..., T], *args: Any) -> T:
    """Run a call that blocks in a thread. A cancelled caller waits for its end all the same.

    A commit cannot be taken back half way, and two threads must not use one client.
    """
    task = asyncio.ensure_future(asyncio.to_thread(call, *args))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is None:
        return task.result()
    # Asked for, so that the loop does not complain of an error that no one looked at.
    task.exception()
    raise cancelled
