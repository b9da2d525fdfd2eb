"""Reads an API as a task does, without Spark and Kafka."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.imports.http.http_import import HttpImport, HttpPart
from penstock.pipeline.importing import BadRecord, Position


@dataclass
class Imported:
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)
    pages: int = 0
    position: Position | None = None

    @property
    def ids(self) -> list[int]:
        return [json.loads(value)["id"] for value in self.values]


def import_all(
    options: dict[str, Any], position: Position | None = None, pages: int = 10_000
) -> Imported:
    """Take pages until there are no more, or that many; the position is stored as Kafka stores it."""
    done = Imported(position=position)
    part = HttpPart(HttpImport.model_validate(options))
    with part.open(position) as reader:
        while done.pages < pages and (taken := [*reader.take(1000)]):
            for each in taken:
                done.values += each.records.column("value").to_pylist()
                done.keys += each.records.column("key").to_pylist()
                done.bad += each.bad
                done.position = msgspec.json.decode(msgspec.json.encode(each.position))
            done.pages += 1
    return done


def import_page_by_page(options: dict[str, Any], position: Position | None = None) -> Imported:
    """Take all pages, each in a process of its own: only the position is passed on."""
    done = Imported(position=position)
    while (one := import_all(options, done.position, pages=1)).pages:
        done.values += one.values
        done.keys += one.keys
        done.bad += one.bad
        done.pages += 1
        done.position = one.position
    return done
