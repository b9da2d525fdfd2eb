"""Where the partitions end that running pipelines read: asked by a thread of its own, never by a caller.

`Running.progress` must return at once, also while no broker answers: heartbeats of jobs depend on it.
One thread and one client serve all pipelines of a process that read from the same cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Event, Lock, Thread

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.errors import PenstockError, TransientError
from penstock.pipeline import Offsets, Source
from penstock.pipeline.source_log import SourceLog

log = event_logger(__name__)
# Seconds between two questions: while progress is asked for, and while it is not.
_OFTEN, _SELDOM = 0.5, 5.0
_TIMEOUT = 10.0
# Lag is asked for many groups at once, and nothing is committed here.
_NO_GROUP = "penstock-without-group"

Position = Callable[[], Offsets]


class LagMonitor:
    """The ends of the partitions of one pipeline, as they were some seconds ago at most.

    Examples
    --------
    ::

        monitor = LagMonitor(source, connection, lambda: running.position)
        monitor.refresh(10)
        monitor.ends  # {("trades", 0): 42}
        monitor.close()
    """

    def __init__(self, source: Source, connection: Connection, position: Position) -> None:
        self.position = position
        self.ends: Offsets = {}
        self.unavailable: TransientError | None = None
        self._closed = False
        self._cluster = _cluster_of(source, connection, self)

    def ask(self) -> None:
        """Request the ends of the partitions without waiting for them."""
        self._cluster.wake()

    def refresh(self, timeout: float = _TIMEOUT) -> None:
        """Wait until the ends were read by a request that began after this call, or the time is up."""
        if not self._closed:
            self._cluster.refresh(timeout)

    def close(self) -> None:
        """Read the ends no more; the last ones stay."""
        self._closed = True
        self._cluster.remove(self)


class _Cluster:
    """Reads the ends for all monitors of one connection, in a thread that ends with the last of them."""

    def __init__(self, source: Source, connection: Connection) -> None:
        self.source = source
        self.connection = connection
        self._monitors: list[LagMonitor] = []
        self._wanted, self._urgent = Event(), Event()
        self._rounds = Condition()
        self._begun = self._done = 0
        self._thread: Thread | None = None

    def add(self, monitor: LagMonitor) -> None:
        self._monitors = [*self._monitors, monitor]
        if self._thread is None:
            name = f"lag-{self.connection.brokers}"
            self._thread = Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def remove(self, monitor: LagMonitor) -> None:
        with _lock:
            self._monitors = [one for one in self._monitors if one is not monitor]
        self.wake()

    def wake(self) -> None:
        self._wanted.set()

    def refresh(self, timeout: float) -> None:
        with self._rounds:
            wanted = self._begun + 1
            self._urgent.set()
            self.wake()
            self._rounds.wait_for(lambda: self._done >= wanted, timeout)

    def _run(self) -> None:
        with self.source.open_log(self.connection, _NO_GROUP, _TIMEOUT) as source_log:
            while not self._ends_here():
                with self._rounds:
                    self._begun += 1
                try:
                    self._read(source_log, self._monitors)
                except Exception as error:  # the thread must outlive what one request met
                    log.warning("lag_unknown", reason=str(error))
                with self._rounds:
                    self._done = self._begun
                    self._rounds.notify_all()
                self._urgent.wait(_OFTEN)
                self._wanted.wait(_SELDOM)

    def _ends_here(self) -> bool:
        self._wanted.clear()
        self._urgent.clear()
        with _lock:
            if self._monitors:
                return False
            self._thread = None
            if self in _clusters:
                _clusters.remove(self)
            return True

    def _read(self, source_log: SourceLog, monitors: list[LagMonitor]) -> None:
        """Ask once for all; where that is refused, once for each, so that only one bears the reason."""
        try:
            ends = source_log.latest({place: 0 for one in monitors for place in one.position()})
        except TransientError as away:
            for one in monitors:
                one.unavailable = away
        except PenstockError:
            for one in monitors:
                _read_alone(source_log, one)
        else:
            for one in monitors:
                one.ends = {place: ends[place] for place in one.position() if place in ends}
                one.unavailable = None


def _read_alone(source_log: SourceLog, monitor: LagMonitor) -> None:
    position = monitor.position()
    try:
        monitor.ends = source_log.latest(position)
        monitor.unavailable = None
    except TransientError as away:
        monitor.unavailable = away
    except PenstockError as error:
        log.debug("lag_unknown", reason=str(error))


_lock = Lock()
_clusters: list[_Cluster] = []


def _cluster_of(source: Source, connection: Connection, monitor: LagMonitor) -> _Cluster:
    with _lock:
        for known in _clusters:
            if (type(known.source), known.connection) == (type(source), connection):
                known.add(monitor)
                return known
        cluster = _Cluster(source, connection)
        _clusters.append(cluster)
        cluster.add(monitor)
        return cluster
