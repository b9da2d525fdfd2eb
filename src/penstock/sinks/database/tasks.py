"""The part of a write that runs in Spark's Python workers: whole Arrow batches, encoded and sent."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyarrow.csv import WriteOptions, write_csv
from pyspark import TaskContext

from penstock.errors import RefusedError, TransientError

TOKEN_BYTES = 32
ACCEPTED = b"\x01"
Encode = Callable[[pa.RecordBatch], "bytes | memoryview"]
_PATIENCE = 30.0


@dataclass(frozen=True)
class Sending:
    """What each task does: a conversation with the relay, begun with the first row."""

    host: str
    port: int
    token: bytes
    encode: Encode

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send the batches, and give how many rows there were."""
        rows = 0
        with ExitStack() as closing:
            relay: socket.socket | None = None
            for batch in batches:
                if not batch.num_rows:
                    continue
                relay = relay or closing.enter_context(self._begin())
                _send(relay, self.encode(batch))
                rows += batch.num_rows
            if relay:
                _finish(relay)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})

    def _begin(self) -> socket.socket:
        try:
            relay = socket.create_connection((self.host, self.port), timeout=_PATIENCE)
        except OSError as error:
            raise TransientError(
                f"a task cannot reach the driver at {self.host}:{self.port}: {error}; "
                "workers must be able to connect to the address in spark.driver.host"
            ) from None
        relay.settimeout(None)  # a slow database slows the tasks down; it does not fail them
        relay.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        relay.sendall(self.token + task.to_bytes(4, "big"))
        return relay


@dataclass(frozen=True)
class Newest:
    """Leaves out, of each batch, the rows that a later one of the same key replaces; then encodes it.

    A row with a null in its key is refused.
    """

    key: tuple[str, ...]
    encode: Encode

    def __call__(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """Encode what is left. Keys that come again later are for the database to tell apart."""
        places = pa.array(range(batch.num_rows), pa.int64())
        keys = [batch.column(name) for name in self.key]
        self._require_values(keys)
        names = [str(at) for at in range(len(keys))]
        rows = pa.table([*keys, places], names=[*names, "place"])
        last = rows.group_by(names, use_threads=False).aggregate([("place", "max")])
        if last.num_rows == batch.num_rows:
            return self.encode(batch)
        return self.encode(batch.take(last.column("place_max").combine_chunks().sort()))

    def _require_values(self, keys: Sequence[pa.Array]) -> None:
        """Refuse rows without a value in a key: no row of the table is the one that they mean."""
        for name, key in zip(self.key, keys, strict=True):
            if key.null_count:
                raise RefusedError(
                    f"a row has null in the column {name!r}, which is part of the key"
                )


def _send(relay: socket.socket, frame: bytes | memoryview) -> None:
    try:
        relay.sendall(len(frame).to_bytes(4, "big"))
        relay.sendall(frame)
    except OSError as error:
        raise _cut(error) from None


def _finish(relay: socket.socket) -> None:
    """Wait for the word that everything was passed on."""
    try:
        relay.sendall((0).to_bytes(4, "big"))
        answer = relay.recv(1)
    except OSError as error:
        raise _cut(error) from None
    if answer != ACCEPTED:
        raise _cut(None)


def _cut(error: OSError | None) -> TransientError:
    return TransientError(f"the write was ended by the driver: {error or 'no answer'}")


def exactly(stream: io.IOBase, size: int) -> bytes:
    """Read so many bytes; less than that is an end in the wrong place.

    >>> exactly(io.BytesIO(b"abc"), 2)
    b'ab'
    """
    data: bytes = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def csv(batch: pa.RecordBatch, null: str) -> memoryview:
    """Return the batch as CSV: texts stand in quotes, a null is `null` without quotes.

    >>> bytes(csv(pa.RecordBatch.from_pydict({"a": ["x,", "", None], "n": [1, None, 3]}), null=""))
    b'"x,",1\\n"",\\n,3\\n'
    """
    written = io.BytesIO()
    write_csv(batch, written, WriteOptions(include_header=False, null_string=null))
    return written.getbuffer()


def csv_in_utc(batch: pa.RecordBatch) -> memoryview:
    """Return the batch as CSV with NULL for a null, and moments in UTC without saying so.

    >>> moments = pa.array([0, None], pa.timestamp("us", "Europe/Rome"))
    >>> bytes(csv_in_utc(pa.RecordBatch.from_pydict({"at": moments})))
    b'1970-01-01 00:00:00.000000\\nNULL\\n'
    """
    columns = [
        column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return csv(pa.RecordBatch.from_arrays(columns, batch.schema.names), null="NULL")
