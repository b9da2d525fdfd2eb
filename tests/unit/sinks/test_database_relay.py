"""What the relay of the sink database lets through, and what makes it give a write up."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.error_frame import WorkerError
from penstock.errors import RefusedError, TransientError
from penstock.sinks.database.relay import Relay

HOST = "127.0.0.1"


class Rows:
    """Stands for a DataFrame of one task, which is run as often as a test wants."""

    columns = ("n",)

    def __init__(self, runs: int = 1, before: Callable[[], None] | None = None) -> None:
        self._runs = runs
        self._before = before

    def mapInArrow(self, task: Any, _schema: str) -> Rows:  # noqa: N802 - Spark's name
        self._task = task
        return self

    def collect(self) -> list[Any]:
        for _ in range(self._runs):
            list(self._task(self._batches()))
        return []

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for number in range(3):
            if self._before:
                self._before()
            yield pa.RecordBatch.from_pydict({"n": [number]})


def encode(batch: pa.RecordBatch) -> bytes:
    return str(batch.column(0)[0].as_py()).encode()


def test_every_frame_is_passed_on_in_order_before_the_end() -> None:
    passed: list[bytes] = []
    with Relay(passed.append, HOST, HOST) as relay:
        relay.carry(Rows(), encode)  # type: ignore[arg-type]
        assert passed == [b"0", b"1", b"2"]


def test_a_task_that_ran_twice_gives_the_write_up() -> None:
    with (
        Relay(lambda _frame: None, HOST, HOST) as relay,
        pytest.raises(TransientError, match="task 0 twice"),
    ):
        relay.carry(Rows(runs=2), encode)  # type: ignore[arg-type]


def test_what_the_database_says_comes_out_and_not_what_the_task_saw() -> None:
    def put(frame: bytes) -> None:
        if frame == b"1":
            raise ValueError("the database is full")

    with Relay(put, HOST, HOST) as relay, pytest.raises(ValueError, match="the database is full"):
        relay.carry(Rows(), encode)  # type: ignore[arg-type]


def test_a_stranger_is_not_heard() -> None:
    passed: list[bytes] = []
    with Relay(passed.append, HOST, HOST) as relay:
        with socket.create_connection(relay.address, timeout=10) as stranger:
            stranger.sendall(bytes(32) + bytes(4) + (3).to_bytes(4, "big") + b"bad")
            stranger.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
        assert passed == []


def test_a_peer_that_says_nothing_does_not_keep_the_end_waiting() -> None:
    with Relay(lambda _frame: None, HOST, HOST) as relay:
        silent = socket.create_connection(relay.address, timeout=10)
    silent.close()


def test_what_a_task_raises_comes_out_with_its_class_and_text() -> None:
    def broken() -> None:
        raise KeyError("the step")

    def refusing() -> None:
        raise RefusedError("row 7 is odd")

    with Relay(lambda _frame: None, HOST, HOST) as relay:
        with pytest.raises(WorkerError, match="KeyError: 'the step'"):
            relay.carry(Rows(before=broken), encode)  # type: ignore[arg-type]
        with pytest.raises(RefusedError, match=r"^row 7 is odd$"):
            relay.carry(Rows(before=refusing), encode)  # type: ignore[arg-type]
