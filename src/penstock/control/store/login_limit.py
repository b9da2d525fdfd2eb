"""A limit on failed logins, for one user at one address and for one address, across all servers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.tables import LOGINS
from penstock.errors import TransientError


class TooManyLoginsError(TransientError):
    """Too many logins failed; `retry_after` says when the next one is allowed."""


@dataclass(frozen=True)
class Limits:
    """How many attempts are free, how long the first wait is, and the longest."""

    of_user: int = 5
    of_address: int = 50
    wait: float = 1.0
    longest: float = 900.0


class LoginLimit:
    """Counts attempts before they are checked: many at once gain nothing.

    A user is limited at one address only, so that no one can lock another person out.
    """

    def __init__(self, database: Database, limits: Limits | None = None) -> None:
        self._database = database
        self._limits = limits or Limits()

    def begin(self, user: str, address: str) -> None:
        """Count an attempt, before the password is checked.

        Raises
        ------
        TooManyLoginsError
            When the user at this address, or the address, has to wait.
        """
        keys = self._keys(user, address)
        # Without the lock for writing: whoever guesses on must not keep workers from their leases.
        wait = self._wait(keys) or self._counted(keys)
        if wait > 0:
            raise TooManyLoginsError(
                f"too many failed logins; try again in {wait:.0f} seconds", retry_after=wait
            )

    def _wait(self, keys: Iterable[str]) -> float:
        """Return for how long an attempt has to wait."""
        query = sa.select(LOGINS.c.until - self._database.now).where(LOGINS.c.key.in_([*keys]))
        with self._database.read() as session:
            left = [float(each) for each in session.execute(query).scalars()]
        return max((each for each in left if 0 < each <= self._limits.longest), default=0.0)

    def _counted(self, keys: Mapping[str, int]) -> float:
        """Count an attempt; return for how long it has to wait."""
        with self._database.write() as session:
            now = float(session.execute(sa.select(self._database.now)).scalar_one())
            # Attempts are forgotten after half a day, also if the clock was set back since.
            old = sa.func.abs(LOGINS.c.until - now) > max(43_200, 2 * self._limits.longest)
            session.execute(LOGINS.delete().where(old))
            return max(self._attempt(session, now, key, free) for key, free in keys.items())

    def succeeded(self, user: str, address: str) -> None:
        """Forget the attempts of a user at an address."""
        with self._database.write() as session:
            for key in self._keys(user, address):
                session.execute(LOGINS.delete().where(LOGINS.c.key == key))

    def _keys(self, user: str, address: str) -> dict[str, int]:
        # A digest: passwords are typed into the field of the name, too.
        who = hashlib.sha256(f"{user}\n{address}".encode("utf-8", "surrogatepass")).hexdigest()
        return {
            f"address:{address[:100]}": self._limits.of_address,
            f"user:{who}": self._limits.of_user,
        }

    def _attempt(self, session: sa.Connection, now: float, key: str, free: int) -> float:
        """Count an attempt; return for how long it has to wait. One that waits does not count."""
        started = self._database.upsert(LOGINS).values(key=key, attempts=0, until=now)
        session.execute(started.on_conflict_do_nothing())
        mine = sa.select(LOGINS).where(LOGINS.c.key == key).with_for_update()
        row = session.execute(mine).mappings().one()
        if 0 < (left := row["until"] - now) <= self._limits.longest:
            return float(left)
        attempts = row["attempts"] + 1
        wait = 0.0 if attempts < free else self._limits.wait * 2.0 ** min(attempts - free, 30)
        until = now + min(wait, self._limits.longest)
        counted = LOGINS.update().where(LOGINS.c.key == key)
        session.execute(counted.values(attempts=attempts, until=until))
        return 0.0
