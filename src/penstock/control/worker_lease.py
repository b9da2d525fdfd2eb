"""What a worker knows of its leases without the database: until when it may write.

A renewal counts from the moment before it was sent. A process that was suspended sees on its own
clock, which advances meanwhile, that its lease may belong to another worker by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from penstock.control.liveness import clock
from penstock.control.store.leases import Stalled
from penstock.control.store.rows import FREE, RunRow
from penstock.errors import FencedError, TransientError
from penstock.retry import wait_for

Clock = Callable[[], float]
MARGIN = 0.1
"""The part of a lease that the holder leaves unused: clocks of two machines run at different rates."""


_LOOK_EVERY = 0.1
# Parts of a lease: after an outage of this length leases may have run out because of it, and holders get
# this time to renew them.
_AWAY, _RENEWED = 0.6, 0.5


class Lease:
    """The right to run one deployment; `sent` is the time before its claim was sent.

    >>> time = iter([1.0, 4.0, 14.0])
    >>> lease = Lease("orders", token=7, length=10.0, sent=1.0, clock=lambda: next(time))
    >>> lease.is_held(), lease.is_held()
    (True, False)
    """

    def __init__(
        self, deployment: str, token: int, length: float, sent: float, clock: Clock = clock
    ) -> None:
        self.deployment = deployment
        self.token = token
        self._usable = length * (1 - MARGIN)
        self._clock = clock
        self._deadline = sent + self._usable
        self._is_lost = False
        # From then on the database had the lease: a renewal that is sent later must confirm it.
        self.received = clock()

    def is_held(self) -> bool:
        """Return whether no other worker can have the lease. It asks no database.

        The time between this answer and a write is not covered: there the token decides, as the epoch
        by which a sink refuses an older writer.
        """
        return not self._is_lost and self._clock() < self._deadline

    def left(self) -> float:
        """Return for how many more seconds the lease is held; 0 if it is not."""
        return 0.0 if self._is_lost else max(0.0, self._deadline - self._clock())

    def require(self) -> None:
        """Raise if the lease is not held: this worker must not write.

        Raises
        ------
        FencedError
            When another worker has it.
        TransientError
            When it was not renewed in time: it may be, if no other worker claims it before.
        """
        if self._is_lost:
            raise FencedError(
                f"another worker has the lease of {self.deployment!r}, which this one had with token "
                f"{self.token}: this worker must not write"
            )
        if not self.is_held():
            raise TransientError(
                f"the lease of {self.deployment!r} was not renewed in time: nothing is written until the "
                "store is reached again"
            )

    def wait(self, within: float) -> None:
        """Wait, at most `within` seconds, until the lease is held or lost: the store may be back soon.

        A batch that waits is cheaper than one that fails: its pipeline would be started again.
        """
        wait_for(lambda: self._is_lost or self.is_held(), within=within, every=_LOOK_EVERY)

    def renewed(self, sent: float) -> None:
        """Extend the lease by a renewal that was sent at this time of the same clock."""
        self._deadline = max(self._deadline, sent + self._usable)

    def advanced(self, token: int) -> None:
        """Use a new token of the same lease."""
        self.token = token

    def lost(self) -> None:
        """Note that another worker has the lease: it is never held again."""
        self._is_lost = True


class HeldLeases:
    """The leases of a worker, as its renewals confirm them."""

    def __init__(self, clock: Clock = clock) -> None:
        self._clock = clock
        self._leases: dict[str, Lease] = {}
        self._lock = Lock()

    def add(self, deployment: str, token: int, length: float, sent: float) -> Lease:
        """Add a lease that was claimed by a statement sent at this time."""
        lease = Lease(deployment, token, length, sent, self._clock)
        with self._lock:
            self._leases[deployment] = lease
        return lease

    def get(self, deployment: str) -> Lease | None:
        """Return the lease of a deployment."""
        return self._leases.get(deployment)

    def remove(self, deployment: str) -> None:
        """Forget a lease that was given back."""
        with self._lock:
            self._leases.pop(deployment, None)

    def confirm(self, tokens: Mapping[str, int], sent: float) -> list[Lease]:
        """Extend the leases that a renewal returned; return those that were lost.

        A lease whose claim was answered after the renewal had been sent is not judged by it: the
        database may have executed the two in either order. Neither is one whose token is being advanced.
        """
        lost = []
        with self._lock:
            for name, lease in list(self._leases.items()):
                if tokens.get(name) == lease.token:
                    lease.renewed(sent)
                elif name not in tokens and lease.received < sent:
                    lease.lost()
                    lost.append(self._leases.pop(name))
        return lost


class LeaseWatch:
    """Finds leases of others that no one renews, by this process's clock and no other.

    The database's clock decides as long as it runs. After it was set back, leases of a worker that died
    would be valid for as long as it was set back. `length` is that of this process's own leases.
    """

    def __init__(self, length: float, clock: Clock = clock) -> None:
        self._length = length
        self._clock = clock
        self._since: dict[str, _Seen] = {}
        self._looked = clock()
        self._is_away = False
        self._back: float | None = None

    def observe(self, runs: Iterable[RunRow]) -> dict[str, Stalled]:
        """Return the leases that have not changed for their whole length, by name.

        While the store is away no one can renew: after that, holders have their whole length again.
        """
        now = self._clock()
        if self._is_away and now - self._looked >= self._length * _AWAY:
            self._since, self._back = {}, now
        self._looked, self._is_away = now, False
        since = {}
        for run in runs:
            if run.worker != FREE:
                lease, before = Stalled(run.token, run.renewals), self._since.get(run.deployment)
                same = before is not None and before.lease == lease
                seen = _Seen(lease, now, run.lease_length)
                since[run.deployment] = before if before and same else seen
        self._since = since
        return {name: seen.lease for name, seen in since.items() if now - seen.at > seen.length}

    def store_away(self) -> None:
        """Note that the leases could not be read: their holders could not renew them, either."""
        self._is_away = True

    def is_settled(self) -> bool:
        """Return whether holders of leases that ran out had time to renew them.

        That is not so just after the store was away: all leases may have run out meanwhile.
        """
        return self._back is None or self._clock() - self._back >= self._length * _RENEWED


@dataclass(frozen=True)
class _Seen:
    lease: Stalled
    at: float
    length: float
