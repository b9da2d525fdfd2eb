"""One way from all of Spark's tasks into one transaction: tasks send encoded rows to the driver, and the
driver passes them on to the one session it has. All rows of a write, and its mark, are one atomic act.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable
from io import IOBase
from threading import Lock, Thread

from pyspark.sql import DataFrame

from penstock.error_frame import ForeignError, in_worker
from penstock.errors import TransientError
from penstock.pipeline.java_errors import raised_in_worker
from penstock.pipeline.names import map_in_arrow
from penstock.sinks.database.tasks import ACCEPTED, TOKEN_BYTES, Encode, Sending, exactly


class Relay:
    """Takes what the tasks of one write send, one frame at a time, and gives it to `put`.

    A task that comes a second time may have sent its rows already: such a write is not to be kept,
    and `carry` raises.
    """

    def __init__(self, put: Callable[[bytes], None], host: str, bind: str) -> None:
        self._put = put
        self._token = secrets.token_bytes(TOKEN_BYTES)
        self._listener = socket.create_server((bind, 0))
        self.address = (host, int(self._listener.getsockname()[1]))
        self._one_at_a_time = Lock()
        self._peers: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._door = Thread(target=self._accept, name="penstock-relay", daemon=True)
        self._seen: set[int] = set()
        self._error: Exception | None = None
        self._repeated: Exception | None = None
        self._closed = False

    @classmethod
    def for_tasks_of(cls, rows: DataFrame, put: Callable[[bytes], None]) -> Relay:
        """Return a relay that the tasks of these rows can reach."""
        conf = rows.sparkSession.sparkContext.getConf()
        host = conf.get("spark.driver.host") or "127.0.0.1"
        return cls(put, host, conf.get("spark.driver.bindAddress") or host)

    def __enter__(self) -> Relay:
        self._door.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        # A blocking accept ends for certain only by a connection.
        socket.create_connection(self._listener.getsockname(), timeout=10).close()
        self._door.join()
        self._hang_up()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def carry(self, rows: DataFrame, encode: Encode) -> None:
        """Compute the rows, once, and pass them on; return after `put` received the last of them."""
        sending = Sending(*self.address, self._token, encode)
        try:
            map_in_arrow(rows, in_worker(sending, "write"), "rows bigint").collect()
        except Exception as error:
            raised = raised_in_worker(error)
            ours = None if isinstance(raised, ForeignError) else raised
            raise self._error or ours or error from None
        if problem := self._error or self._repeated:
            raise problem

    def _accept(self) -> None:
        while not self._closed:
            peer, _ = self._listener.accept()
            self._peers.append(peer)
            thread = Thread(target=self._serve, args=[peer], name="penstock-relay", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        """Pass one task's frames on; where it breaks off, its own failure tells Spark why."""
        with peer, peer.makefile("rb", buffering=1 << 20) as frames:
            try:
                self._pass_on(frames)
                peer.sendall(ACCEPTED)
            except (EOFError, OSError):
                return

    def _pass_on(self, frames: IOBase) -> None:
        if not hmac.compare_digest(exactly(frames, TOKEN_BYTES), self._token):
            raise EOFError
        self._admit(int.from_bytes(exactly(frames, 4), "big"))
        while size := int.from_bytes(exactly(frames, 4), "big"):
            self._give(exactly(frames, size))

    def _admit(self, task: int) -> None:
        with self._one_at_a_time:
            if task in self._seen:
                self._repeated = TransientError(
                    f"Spark ran task {task} twice, and its rows may be there twice: "
                    "the write is rolled back"
                )
            self._seen.add(task)

    def _give(self, frame: bytes) -> None:
        with self._one_at_a_time:
            if self._error is not None:
                raise EOFError
            try:
                self._put(frame)
            except Exception as error:
                self._error = error
        if self._error is not None:
            self._hang_up()
            raise EOFError

    def _hang_up(self) -> None:
        """End every conversation, so that no task waits for an answer that never comes."""
        for peer in list(self._peers):
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself
