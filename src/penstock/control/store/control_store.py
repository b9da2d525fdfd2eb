"""The store of the control plane: one database, and one object for each subject of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import Self

from penstock.config.secrets import mask
from penstock.control.secrets.key_file import KeyFile
from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store.audit import Audit
from penstock.control.store.counters import Counters
from penstock.control.store.database import Database
from penstock.control.store.deployments import Deployments
from penstock.control.store.events import Events, next_number
from penstock.control.store.leases import Leases
from penstock.control.store.login_limit import LoginLimit
from penstock.control.store.logs import Logs
from penstock.control.store.migrations.migration import current_version, migrate
from penstock.control.store.partition_lag import PartitionLags
from penstock.control.store.replays import Replays
from penstock.control.store.restarts import Restarts
from penstock.control.store.rows import Desired, Kind, RunRow, WorkerRow
from penstock.control.store.samples import Samples
from penstock.control.store.tables import DEPLOYMENTS, REPLAYS, RUNS, SPECS, WORKERS
from penstock.control.store.users import Tokens, Users
from penstock.control.store.workers import Workers
from penstock.errors import SetupError


@dataclass(frozen=True)
class Wanted:
    """What should happen with a deployment."""

    name: str
    desired: Desired
    generation: int = 1
    round: int = 0
    kind: Kind = Kind.PIPELINE


@dataclass(frozen=True)
class View:
    """What a worker decides by, at one time of the database."""

    now: float
    wanted: dict[str, Wanted]
    runs: dict[str, RunRow]
    workers: dict[str, WorkerRow]


class ControlStore:
    """The store; `open` brings its schema to this release first."""

    def __init__(self, database: Database, secrets: SpecSecrets, length: float = 15.0) -> None:
        self.database = database
        self.secrets = secrets
        self.events = Events(database)
        self.deployments = Deployments(database, self.events)
        self.logs = Logs(database)
        self.leases = Leases(database, length)
        self.counters = Counters(database)
        self.samples = Samples(database)
        self.partition_lag = PartitionLags(database)
        self.restarts = Restarts(database)
        self.replays = Replays(database)
        self.workers = Workers(database)
        self.users = Users(database)
        self.tokens = Tokens(database)
        self.logins = LoginLimit(database)
        self.audit = Audit(database)

    @classmethod
    def open(cls, database: Database, keys: KeyFile, length: float = 15.0) -> ControlStore:
        """Open the store of a database; `length` is the duration of a lease in seconds.

        A missing file of keys is created, unless the store has secrets: with other keys deployments would
        fail wherever this process runs them.
        """
        try:
            _refuse_lost_keys(database, keys)
            secrets = SpecSecrets(Sealer(keys.create()))
            migrate(database, secrets.sealed_data)
        except SQLAlchemyError as error:
            raise SetupError(
                f"the store {database.place} cannot be opened: {mask(str(error))}"
            ) from None
        return cls(database, secrets, length)

    @classmethod
    def at(cls, place: str | Path, keys: Path, length: float = 15.0) -> ControlStore:
        """Open the store at a file or a URL, with the keys of a file."""
        return cls.open(Database(place), KeyFile(keys), length)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Store a change and its row of the audit log in one transaction: both, or neither.

        Statements of this thread in the block belong to it. It should be short.
        """
        with self.database.write() as session:
            next_number(session)  # the first lock of every transaction
            yield

    def view(self) -> View:
        """Return everything that a worker decides by, in two statements."""
        table = DEPLOYMENTS.c
        columns = (table.name, table.desired, table.generation, table.round, table.kind)
        both = sa.select(*columns, *RUNS.c).join(RUNS, RUNS.c.deployment == table.name)
        with self.database.read() as session:
            rows = session.execute(both).all()
            now = float(session.execute(sa.select(self.database.now)).scalar_one())
            workers = [WorkerRow(**row) for row in session.execute(sa.select(WORKERS)).mappings()]
        return View(
            now,
            {row[0]: Wanted(row[0], Desired(row[1]), row[2], row[3], Kind(row[4])) for row in rows},
            {row[0]: RunRow(*row[5:]) for row in rows},
            {worker.id: worker for worker in workers},
        )

    def reseal(self) -> int:
        """Encrypt all stored secrets with the newest key; return how many texts were changed."""
        changed = 0
        for text, name in (
            (DEPLOYMENTS.c.spec, DEPLOYMENTS.c.name),
            (SPECS.c.spec, SPECS.c.deployment),
            (REPLAYS.c.value, REPLAYS.c.deployment),
        ):
            table = name.table
            with self.database.read() as session:
                keys = [name, *(column for column in table.primary_key if column is not name)]
                rows = session.execute(sa.select(text, *keys).where(text.is_not(None))).all()
            for before, *values in rows:
                after = self.secrets.resealed(values[0], before)
                same = [column == value for column, value in zip(keys, values, strict=True)]
                update = table.update().where(*same, text == before).values({text: after})
                if after != before:
                    with self.database.write() as session:
                        changed += session.execute(update).rowcount
        return changed


def _refuse_lost_keys(database: Database, keys: KeyFile) -> None:
    if keys.path.exists() or current_version(database) is None:
        return
    sealed = sa.select(DEPLOYMENTS.c.name).where(DEPLOYMENTS.c.spec.contains("${sealed:"))
    with database.read() as session:
        name = session.execute(sealed.order_by(DEPLOYMENTS.c.name).limit(1)).scalar()
    if name is not None:
        raise SetupError(
            f"the file of keys {keys.path} is missing, and secrets in the store {database.place} are "
            f"encrypted, as those of {name!r}: copy the file from another machine or from the backup "
            "(--keys, PENSTOCK_STORE_KEYS); if it is lost, create one with '(umask 077; openssl rand "
            f"-base64 32 > {keys.path})', and deploy these definitions again with their secrets"
        )
