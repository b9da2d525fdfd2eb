"""Users and their tokens. Neither a password nor a token is stored, only hashes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from penstock.control.passwords import (
    COST,
    Cost,
    hash_password,
    needs_rehash,
    new_token,
    token_digest,
    verify_password,
)
from penstock.control.roles import Access, Grants, grants_text, read_grants
from penstock.control.store.database import Database
from penstock.control.store.tables import TOKENS, USERS
from penstock.errors import ConfigError

_LONGEST_NAME = 200
# How exact the time of the last use is: not every request writes.
_USED_EVERY = 60.0
# For how long a token that has expired is still in the lists.
_EXPIRED_FOR = 86_400.0


@dataclass(frozen=True)
class UserRow:
    """A user; the hash of the password is never read into it."""

    name: str
    grants: Grants
    disabled: bool
    created: float


@dataclass(frozen=True)
class TokenRow:
    """A token without its text, which is shown once."""

    id: str
    user: str
    name: str
    grants: Grants
    created: float
    expires: float | None
    used: float | None


class Users:
    """The users, and what they may do."""

    def __init__(self, database: Database, cost: Cost = COST) -> None:
        self._database = database
        self._cost = cost

    def add(self, name: str, password: str, grants: Iterable[str]) -> None:
        """Add a user with these grants, as in `["viewer", "operator:team=payments"]`."""
        if not name.isprintable() or not 1 <= len(name) <= _LONGEST_NAME or ":" in name:
            raise ConfigError(
                f"{name[:40]!r} is not a name of a user: 1 to {_LONGEST_NAME} printable characters "
                "without a colon"
            )
        values = {"password": hash_password(password, self._cost), "disabled": False}
        text = grants_text(read_grants(grants))
        added = USERS.insert().values(name=name, grants=text, created=self._database.now, **values)
        try:
            with self._database.write() as session:
                session.execute(added)
        except IntegrityError:
            raise ConfigError(f"the user {name!r} exists already") from None

    def set_password(self, name: str, password: str) -> None:
        """Replace the password of a user; all tokens of the user end."""
        self._update(name, password=hash_password(password, self._cost))
        with self._database.write() as session:
            session.execute(TOKENS.delete().where(TOKENS.c.user == name))

    def set_grants(self, name: str, grants: Iterable[str]) -> None:
        """Replace what a user may do; it counts for existing tokens, too."""
        self._update(name, grants=grants_text(read_grants(grants)))

    def disable(self, name: str) -> None:
        """Refuse a user and all tokens of the user from now on."""
        self._update(name, disabled=True)

    def enable(self, name: str) -> None:
        """Allow a user again that was disabled."""
        self._update(name, disabled=False)

    def remove(self, name: str) -> None:
        """Remove a user and all tokens of the user."""
        with self._database.write() as session:
            session.execute(TOKENS.delete().where(TOKENS.c.user == name))
            session.execute(USERS.delete().where(USERS.c.name == name))

    def all(self) -> list[UserRow]:
        """Return every user."""
        columns = (USERS.c.name, USERS.c.grants, USERS.c.disabled, USERS.c.created)
        with self._database.read() as session:
            rows = session.execute(sa.select(*columns).order_by(USERS.c.name)).all()
        return [UserRow(row[0], _grants(row[1]), *row[2:]) for row in rows]

    def log_in(self, name: str, password: str) -> Access | None:
        """Return what a user with this password may do; None if the two do not belong together.

        A name that does not exist takes as long as a wrong password.
        """
        with self._database.read() as session:
            query = sa.select(USERS).where(USERS.c.name == name[:_LONGEST_NAME])
            row = session.execute(query).mappings().one_or_none()
        stored = row["password"] if row else self._no_ones_hash
        if not verify_password(password, stored) or row is None or row["disabled"]:
            return None
        if needs_rehash(stored, self._cost):
            self._update(name, password=hash_password(password, self._cost))
        return Access(row["name"], _grants(row["grants"]))

    @cached_property
    def _no_ones_hash(self) -> str:
        return hash_password(token_hex(16), self._cost)

    def _update(self, name: str, **values: Any) -> None:
        with self._database.write() as session:
            changed = session.execute(USERS.update().where(USERS.c.name == name).values(**values))
            if not changed.rowcount:
                raise ConfigError(f"there is no user {name!r}")


class Tokens:
    """Tokens of users, for programs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, user: str, name: str, *, grants: Iterable[str], seconds: float | None
    ) -> tuple[str, TokenRow]:
        """Return a new token, which is not shown again, and its row; `seconds` until it expires.

        Tokens of all users that expired more than a day ago are deleted.
        """
        if seconds is not None and seconds <= 0:
            raise ConfigError(
                f"a token cannot expire after {seconds} seconds; give a positive number"
            )
        token, id = new_token(), token_hex(8)
        expires = None if seconds is None else self._database.now + seconds
        limits = read_grants(grants)
        values = {"id": id, "user": user, "name": name[:_LONGEST_NAME], "expires": expires}
        with self._database.write() as session:
            if not session.execute(sa.select(USERS.c.name).where(USERS.c.name == user)).scalar():
                raise ConfigError(f"there is no user {user!r}")
            long_ago = self._database.now - _EXPIRED_FOR
            session.execute(TOKENS.delete().where(TOKENS.c.expires < long_ago))
            session.execute(
                TOKENS.insert().values(
                    digest=token_digest(token),
                    grants=grants_text(limits),
                    created=self._database.now,
                    **values,
                )
            )
        return token, next(row for row in self.all(user) if row.id == id)

    def check(self, token: str) -> Access | None:
        """Return what the bearer of a token may do; None for one that is unknown or has expired.

        The digest is looked up, not the token: what a lookup's time tells about a digest is of no use.
        """
        now = self._database.now
        digest = token_digest(token)
        valid = sa.or_(TOKENS.c.expires.is_(None), TOKENS.c.expires > now)
        stale = sa.or_(TOKENS.c.used.is_(None), TOKENS.c.used < now - _USED_EVERY)
        query = (
            sa.select(USERS.c.name, USERS.c.grants, TOKENS.c.grants, stale)
            .join(USERS, USERS.c.name == TOKENS.c.user)
            .where(TOKENS.c.digest == digest, valid, USERS.c.disabled.is_(False))
        )
        with self._database.read() as session:
            row = session.execute(query).one_or_none()
        if row is None:
            return None
        if row[3]:
            used = TOKENS.update().where(TOKENS.c.digest == digest).values(used=now)
            with self._database.write() as session:
                session.execute(used)
        return Access(row[0], _grants(row[1]), _grants(row[2]))

    def revoke(self, id: str) -> bool:
        """End a token; return whether there was one."""
        with self._database.write() as session:
            return bool(session.execute(TOKENS.delete().where(TOKENS.c.id == id)).rowcount)

    def all(self, user: str | None = None) -> list[TokenRow]:
        """Return the tokens of a user, or of all; those that have expired, too."""
        columns = [column for column in TOKENS.c if column.name != "digest"]
        query = sa.select(*columns).order_by(TOKENS.c.created, TOKENS.c.id)
        if user is not None:
            query = query.where(TOKENS.c.user == user)
        with self._database.read() as session:
            rows = session.execute(query).mappings().all()
        return [TokenRow(**{**row, "grants": _grants(row["grants"])}) for row in rows]


def _grants(text: str) -> Grants:
    return read_grants(json.loads(text))
