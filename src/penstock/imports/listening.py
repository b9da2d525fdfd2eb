"""A listener that runs, in the place of rounds: it takes records by itself, and is asked how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.error_frame import to_document
from penstock.imports.import_plan import ImportPlan
from penstock.imports.part_task import Outcome
from penstock.imports.positions import ensure_topic
from penstock.imports.rounds import Counts, Round
from penstock.kafka import Admin
from penstock.pipeline.importing import ListeningImport, System

if TYPE_CHECKING:
    from penstock.config import Connection


class Listening:
    """One listener of this process. It needs no claim: records that two processes take are different."""

    # It refuses requests by itself, and has to be asked for its counts.
    waits_when_full = False
    is_ready = True

    def __init__(
        self,
        plan: ImportPlan,
        source: ListeningImport,
        connection: Connection,
        is_full: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._topics = source.topics()
        self._connection = connection
        self._listener = source.listener(connection, is_full)

    def prepare(self) -> None:
        """Create the topics, where they are missing."""
        with Admin(self._connection) as admin:
            for topic in self._topics:
                ensure_topic(admin, topic, None, self._plan.topic_config(topic))

    def claim(self) -> None:
        """Listen from now on."""
        self._listener.start()

    def run(self, _system: System) -> Round:
        """Return what was taken since the last time."""
        records, error = self._listener.counted()
        outcome = Outcome("", records=records, transactions=int(records > 0))
        if error is not None:
            outcome.error = to_document(error, "import")
        return Counts([outcome])

    def close(self) -> None:
        """Answer the requests that are under way, and end."""
        self._listener.close()
