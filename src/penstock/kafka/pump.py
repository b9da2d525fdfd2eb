"""Serves a client's callbacks from an event loop, for as long as somebody there waits for one."""

from __future__ import annotations

import asyncio
from typing import Any

# Short enough that a delivery is known at once, long enough to leave the loop to others.
TICK = 0.002


class Pump:
    """One task that polls the client while records are on their way; it ends by itself.

    librdkafka calls back only when it is polled. Polling without waiting on the loop's own thread
    needs no other thread, and a cancelled waiter loses nothing: the answer is kept by the delivery.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._task: asyncio.Task[None] | None = None

    async def until(self, answered: asyncio.Event) -> None:
        """Wait for an answer."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run())
        await answered.wait()

    async def _run(self) -> None:
        while len(self._client):
            self._client.poll(0)
            await asyncio.sleep(TICK)
