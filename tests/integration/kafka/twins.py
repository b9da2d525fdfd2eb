"""Lets one test run against the sync clients and, coroutine by coroutine, against their asyncio twins."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.kafka import AsyncConsumer, AsyncProducer, Consumer, Producer
from penstock.kafka.producing.receipt import Receipt


class Twins:
    """Makes producers and consumers of one kind: `sync` or `asyncio`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.loop = asyncio.new_event_loop()

    def producer(self, *args: Any, **options: Any) -> Any:
        return self._made(Producer, AsyncProducer, args, options)

    def consumer(self, *args: Any, **options: Any) -> Any:
        return self._made(Consumer, AsyncConsumer, args, options)

    def wait(self, delivery: Receipt) -> Any:
        """The outcome of a delivery, by waiting or by awaiting."""
        if self.kind == "sync":
            return delivery.result(30)
        return self.loop.run_until_complete(asyncio.wait_for(_awaited(delivery), 30))

    def _made(self, sync: Any, other: Any, args: Any, options: Any) -> Any:
        made = sync if self.kind == "sync" else other
        client = made(*args, **options)
        return client if self.kind == "sync" else Blocking(client, self.loop)


async def _awaited(delivery: Receipt) -> Any:
    return await delivery


class Blocking:
    """An asyncio client whose coroutines are run to their end at once."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.__dict__.update(client=client, loop=loop)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name == "transaction":
            return lambda: self._blocking(found())
        return self._call(found) if inspect.ismethod(found) else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.client, name, value)

    def __len__(self) -> int:
        return len(self.client)

    def __enter__(self) -> Any:
        self.loop.run_until_complete(self.client.__aenter__())
        return self

    def __exit__(self, *problem: object) -> None:
        self.loop.run_until_complete(self.client.__aexit__(*problem))

    def __iter__(self) -> Iterator[Any]:
        records = self.client.__aiter__()
        while True:
            try:
                yield self.loop.run_until_complete(anext(records))
            except StopAsyncIteration:
                return

    def _call(self, method: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            unwrapped = [getattr(arg, "client", arg) for arg in args]
            result = method(*unwrapped, **options)
            if inspect.iscoroutine(result):
                return self.loop.run_until_complete(result)
            return result

        return run

    @contextmanager
    def _blocking(self, manager: Any) -> Iterator[Any]:
        self.loop.run_until_complete(manager.__aenter__())
        try:
            yield self
        except BaseException as problem:
            if not self.loop.run_until_complete(
                manager.__aexit__(type(problem), problem, problem.__traceback__)
            ):
                raise
        else:
            self.loop.run_until_complete(manager.__aexit__(None, None, None))
