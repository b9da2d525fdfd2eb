"""Rounds over a folder of a store without Kafka: read what is pending, and keep the positions."""

from __future__ import annotations

import json
from typing import Any

from penstock.imports.files import FilesImport
from penstock.pipeline.importing import BadRecord, Position, key_of


class Objects:
    """An import of a folder; tasks are killed after some transactions where that is asked for."""

    def __init__(self, folder: str, **options: Any) -> None:
        self.system = FilesImport(folder=folder, **options).system()
        self.positions: dict[str, Position] = {}
        self.bad: list[BadRecord] = []

    def round(self, most: int = 10_000, transactions: int = 1_000_000) -> list[bytes]:
        found: list[bytes] = []
        for part in self.system.pending(self.positions):
            key = key_of(part.place)
            with part.open(self.positions.get(key)) as reader:
                for _ in range(transactions):
                    taken = [*reader.take(most)]
                    if not taken:
                        break
                    for each in taken:
                        found += each.records.values
                        self.bad += each.bad
                    self.positions[key] = json.loads(json.dumps(taken[-1].position))
        return found
