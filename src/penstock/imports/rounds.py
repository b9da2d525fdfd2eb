"""The rounds of an import, in the driver: ask the system what there is, and let tasks read it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from penstock.engine.turns import turn
from penstock.error_frame import from_document
from penstock.errors import FencedError, PenstockError, TransientError
from penstock.imports.import_plan import ImportPlan
from penstock.imports.open_transactions import end_open_transactions
from penstock.imports.part_opening import require_claim
from penstock.imports.part_task import Errand, Outcome, run_all
from penstock.imports.positions import (
    SHORT,
    TOPIC,
    Known,
    Positions,
    claim_record,
    ensure_topic,
    require_topic,
)
from penstock.kafka import Admin
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline.importing import Part, System, key_of
from penstock.pipeline.storage import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.config import Connection

# How many parts a task gets at most; it begins none after its turn, and the next round has the rest.
_SHARE = 100


@dataclass
class Round:
    """What one round gave."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Return how many records were imported."""
        return sum(outcome.records for outcome in self.outcomes)

    @property
    def failed(self) -> int:
        """Return how many went to the dead letters."""
        return sum(outcome.failed for outcome in self.outcomes)

    @property
    def transactions(self) -> int:
        """Return in how many transactions."""
        return sum(outcome.transactions for outcome in self.outcomes)

    @property
    def has_more(self) -> bool:
        """Return whether the next round should begin at once."""
        return any(outcome.transactions or outcome.more for outcome in self.outcomes)

    @property
    def last_failure(self) -> str | None:
        """Return why the last one of them went there."""
        return next((each.last_failure for each in self.outcomes[::-1] if each.last_failure), None)

    @property
    def error(self) -> PenstockError | None:
        """Return the error of a part, if one had any: one that does not pass before one that does."""
        errors = [from_document(each.error) for each in self.outcomes if each.error]
        errors.sort(key=lambda error: isinstance(error, TransientError))
        return errors[0] if errors else None


class Counts(Round):
    """What a listener has taken since it was asked last: the next time to ask is after a while."""

    has_more = False


class Rounds:
    """One process that runs an import."""

    # It waits while too much of what was imported is not processed.
    waits_when_full = True
    # Whether it works before it has read anything.
    is_ready = False

    def __init__(
        self,
        name: str,
        plan: ImportPlan,
        connection: Connection,
        session: Callable[[], SparkSession],
    ) -> None:
        self._name = name
        self._plan = plan
        self._connection = connection
        # Asked for each time: one whose Java process died is replaced.
        self._session = session
        self._last: dict[str, int] = {}
        # The topics that exist, with the largest record that each takes, where the broker says it.
        self._topics: dict[str, int | None] = {}
        self._rounds = 0
        self._claim = 0
        self._known = Known()
        # One for all rounds: an import that waits asks several times a second.
        self._positions = Positions(connection)

    def prepare(self) -> None:
        """Create the topics that are known: a pipeline can read the records at once."""
        topic = self._plan.source.topic
        with Admin(self._connection) as admin:
            require_topic(admin)
            self._create_topics(
                [self._plan.dead_letters, *([] if "{" in topic else [topic])], admin
            )

    def claim(self) -> None:
        """Take the import over from any other process that runs it."""
        self._known = self._claimed()

    def close(self) -> None:
        """Close the connection."""
        self._positions.close()

    def run(self, system: System) -> Round:
        """Read what the system has, once; nothing if it has nothing."""
        self._known = self._positions.read(self._name, self._known, self._end_open)
        require_claim(self._name, self._claim, self._known.claim)
        pending = system.pending(self._known.positions)
        if not pending:
            return Round()
        self._rounds += 1
        chosen = self._in_turn(pending)
        self._create_missing({self._plan.source.topic_of(part) for part in chosen})
        done = Round(self._read([self._errand(part) for part in chosen]))
        if done.error:
            self._topics.clear()  # one may have been deleted, or its limit changed
        self._last |= dict.fromkeys((outcome.place for outcome in done.outcomes), self._rounds)
        if isinstance(done.error, FencedError):
            self._explain(done.error)
        return done

    def _claimed(self) -> Known:
        """Take the import over: note a claim that is greater than every one before it."""
        with Transaction(self._connection, f"{self._name}.import", SHORT) as transaction:
            known = self._positions.read(self._name, on_open=self._end_open)
            self._claim = known.claim = known.claim + 1
            transaction.begin()
            transaction.send(claim_record(self._name, known.claim), TOPIC)
            transaction.commit()
        return known

    def _end_open(self, since: int) -> None:
        """End transactions that a killed task has left open: between two rounds no other task runs."""
        end_open_transactions(self._connection, self._name, since)

    def _in_turn(self, pending: Sequence[Part]) -> list[Part]:
        """Return the parts whose turn it is: those that were read last come last."""

        def turn(part: Part) -> int:
            return self._last.get(key_of(part.place), -1)

        chosen = sorted(pending, key=turn)[: self._plan.source.tasks_max * _SHARE]
        present = {key_of(part.place) for part in pending}
        self._last = {place: at for place, at in self._last.items() if place in present}
        return chosen

    def _errand(self, part: Part) -> Errand:
        place, positions = key_of(part.place), self._known.positions
        own = {place: positions[place]} if place in positions else {}
        topic = self._plan.source.topic_of(part)
        return Errand(
            self._name,
            self._claim,
            part,
            self._connection,
            topic,
            self._plan.dead_letters,
            Known(own, self._known.claim, self._known.until),
            self._plan.source.max_records,
            self._topics.get(topic),
        )

    def _read(self, errands: list[Errand]) -> list[Outcome]:
        """Let at most `tasks_max` tasks go through the parts, each through its share."""
        context = self._session().sparkContext
        tasks = min(self._plan.source.tasks_max, len(errands))
        if is_local(str(context.master)):
            # A task that waits for a core opens no part ahead: its parts are in the share of another.
            tasks = min(tasks, context.defaultParallelism)
        shares = [errands[number::tasks] for number in range(tasks)]
        context.setJobDescription(f"import {self._name}")
        paths = sys.path if is_local(str(context.master)) else []
        # By value what is in the user's script, which tasks cannot import.
        sent = [(paths, cloudpickle.dumps(share)) for share in shares]  # type: ignore[no-untyped-call]
        with turn(context):
            return context.parallelize(sent, tasks).flatMap(_in_task).collect()

    def _create_missing(self, topics: Iterable[str]) -> None:
        """Create topics, where this process does not know them yet."""
        if not self._topics.keys() >= {*topics}:
            with Admin(self._connection) as admin:
                self._create_topics(topics, admin)

    def _create_topics(self, topics: Iterable[str], admin: Admin) -> None:
        """Create topics that are missing, where the broker lets us; otherwise it makes them itself."""
        for topic in sorted({*topics} - self._topics.keys()):
            ensure_topic(admin, topic, None, self._plan.topic_config(topic))
            self._topics[topic] = admin.largest_record(topic)

    def _explain(self, error: FencedError) -> None:
        """Raise what it means: this process has lost the import, or an operator set a position."""
        known = self._positions.read(self._name, self._known)
        require_claim(self._name, self._claim, known.claim)
        raise TransientError(f"a part is read again: {error}") from error


def _in_task(sent: tuple[list[str], bytes]) -> list[Outcome]:
    """Run errands in a task; on this machine their modules are found where the driver finds them."""
    paths, errands = sent
    sys.path += [path for path in paths if path not in sys.path]
    return run_all(cloudpickle.loads(errands))
