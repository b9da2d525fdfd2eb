"""Bodies of requests to a listener: memory for as many bytes as were sent, and keys that have bytes."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from penstock.imports.http_listener import HttpListenerImport
from penstock.imports.http_listener.http_requests import Head, RequestError, read_body
from penstock.imports.http_listener.request_records import delivery_of


def test_small_chunks_take_no_more_memory_than_their_bytes() -> None:
    async def read() -> tuple[int, int]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"2\r\nab\r\n" * 10_000 + b"0\r\n\r\n")
        reader.feed_eof()
        tracemalloc.start()
        body = await read_body(reader, None, 1_000_000, lambda _: None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return len(body), peak

    size, peak = asyncio.run(read())
    assert size == 20_000
    # The buffer of the reader is copied once while it shrinks.
    assert peak < 300_000


def test_a_key_that_has_no_bytes_is_refused() -> None:
    options = HttpListenerImport(format="json", key={"pointer": "/id"})
    head = Head("POST", "/", 1, {})
    (record,) = delivery_of(options, head, "", b'{"id":"a"}').records
    assert record.key == b"a"
    with pytest.raises(RequestError, match="the key at /id is not a text that has bytes"):
        delivery_of(options, head, "", b'{"id":"\\ud83d"}')
