"""Runs a database import without Kafka: its records and positions stay in memory."""

from __future__ import annotations

import json
from typing import Any

from penstock.imports.database.database_import import DatabaseImport
from penstock.imports.positions import key_of
from penstock.kafka.producing.plain_records import PlainRecords
from penstock.pipeline.importing import BadRecord, Position, System


class Rounds:
    """The records of an import by topic, read in rounds as the engine does it."""

    def __init__(self, **options: Any) -> None:
        most = options.pop("max_records", 1000)
        self.source = DatabaseImport.model_validate({"topic": "{table}"} | options)
        self.most = most
        self.system: System = self.source.system()
        self.positions: dict[str, Position] = {}
        self.records: list[tuple[str, bytes | None, bytes | None]] = []
        self.bad: list[BadRecord] = []
        self.transactions = 0

    def __enter__(self) -> Rounds:
        return self

    def __exit__(self, *_: object) -> None:
        self.system.close()

    def restart(self) -> None:
        """Begin again as a new process does: only the positions are known."""
        self.system.close()
        self.system = self.source.system()

    def run(self) -> int:
        """Read everything that is pending; return how many records that gave."""
        before = len(self.records)
        while parts := self.system.pending(self.positions):
            for part in parts:
                place, topic = key_of(part.place), self.source.topic_of(part)
                # A position goes through the topic as JSON.
                known = self.positions.get(place)
                with part.open(json.loads(json.dumps(known))) as reader:
                    while taken := list(reader.take(self.most)):
                        for each in taken:
                            self._note(topic, each.records)
                            self.bad += each.bad
                        self.positions[place] = taken[-1].position
                        self.transactions += 1
        return len(self.records) - before

    def _note(self, topic: str, batch: Any) -> None:
        if isinstance(batch, PlainRecords):  # that of a plan: it has none
            self.records += [(topic, key, value) for _, value, key in batch.messages(topic)]
            return
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        self.records += [(topic, key, value) for key, value in zip(keys, values, strict=True)]

    @property
    def rows(self) -> list[Any]:
        """Return the values, read as JSON."""
        return [json.loads(value) for _, _, value in self.records if value is not None]

    def column(self, name: str) -> list[Any]:
        """Return one column of all rows."""
        return [row[name] for row in self.rows]
