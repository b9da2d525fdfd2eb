"""A sink whose writers note what is asked of them, for tests of the engine without Spark."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from penstock.errors import SetupError
from penstock.pipeline import EVERY_DELIVERY, Batch, LastWrite, Opening, Sink, Writer


class FakeSink(Sink):
    """Notes calls in the list `calls`."""

    name = "fake"
    delivers = EVERY_DELIVERY
    calls: Any
    label: str = "rows"
    opens: bool = True

    def open(self, opening: Opening) -> Writer:
        if not self.opens:
            raise SetupError("cannot be opened")
        self.calls.append((self.label, "open", opening.pipeline))
        return FakeWriter(self, opening)


class FakeWriter(Writer[FakeSink]):
    """Knows one write, where it is given one."""

    known: LastWrite | None = None

    def note(self, *call: Any) -> None:
        self.sink.calls.append((self.sink.label, *call))

    def prepare(self, schema: Any) -> None:
        self.note("prepare", tuple(schema.names))

    def last_write(self) -> LastWrite | None:
        return self.known

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        self.note("claim", epoch)
        return self.known

    def write(self, batch: Batch) -> None:
        self.note("write", batch.id)

    def close(self) -> None:
        self.note("close")
