"""What a task does: read one part, and write its records and its position in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from penstock.config import Connection
from penstock.error_frame import to_document
from penstock.imports.open_transactions import end_open_transactions
from penstock.imports.part_opening import Opened, OpenedAhead, open_part
from penstock.imports.positions import TOPIC, Known, position_record, transaction_of
from penstock.kafka.producing.copies import Copies
from penstock.kafka.producing.plain_records import PlainRecords
from penstock.kafka.producing.record_transaction import AROUND, Transaction
from penstock.pipeline.importing import BadRecord, Part, Portion, Position, Reader, key_of

# No portion is added to a transaction that is older than this, in seconds, where it may end.
_LONGEST = 60.0
# What librdkafka puts together by default, in bytes.
_LARGEST_BATCH = 1_000_000
# How long a task reads before other imports get its place, in seconds.
_TURN = 5.0
# What of a bad record is in its dead letter, which must not be too large for a record itself.
_LETTER, _TEXT = 500_000, 10_000
# The lengths of its name and its value.
_AROUND_HEADER = 10
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


class Errand(Struct, frozen=True):
    """One part to read, as its task receives it."""

    name: str
    claim: int
    part: Part
    connection: Connection
    topic: str
    dead_letters: str
    known: Known
    most: int
    # The largest record that the topic takes, where it is known.
    largest: int | None = None

    @property
    def limits(self) -> dict[str, int]:
        """Return the settings with which a producer makes no batch that the topic does not take."""
        largest = self.largest or _LARGEST_BATCH
        return {"batch.size": max(1000, min(largest - AROUND, _LARGEST_BATCH))}

    def end_open(self, since: int) -> None:
        """End a transaction of another part that is open for too long; its task, if alive, repeats it."""
        end_open_transactions(self.connection, self.name, since)

    @property
    def transaction(self) -> str:
        """Return the name of the transactions: it belongs to the part, whoever reads it."""
        return transaction_of(self.name, key_of(self.part.place))


class Outcome(Struct):
    """What a task did."""

    place: str
    records: int = 0
    failed: int = 0
    transactions: int = 0
    position: Position | None = None
    last_failure: str | None = None
    more: bool = False
    # The error as a document (`penstock.error_frame`).
    error: dict[str, Any] | None = None


def run_all(errands: list[Errand]) -> list[Outcome]:
    """Read parts, one by one, until the turn of the task is over; return what was done with each."""
    until = time.monotonic() + _TURN
    outcomes = []
    with OpenedAhead(errands) as ahead:
        for errand in errands:
            outcomes.append(run(errand, until, ahead.next))
            if time.monotonic() >= until:
                break
    return outcomes


def run(errand: Errand, until: float, opened: Callable[[], Opened] | None = None) -> Outcome:
    """Read a part. A failure is returned, not raised: Spark would reduce it to text."""
    outcome = Outcome(key_of(errand.part.place))
    try:
        _run(errand, opened() if opened else open_part(errand), until, outcome)
    except Exception as error:  # ours, the author's, or a driver's
        outcome.error = to_document(error, "import")
    return outcome


def _run(errand: Errand, opened: Opened, until: float, outcome: Outcome) -> None:
    with opened.transaction as transaction:
        outcome.position = opened.known.positions.get(outcome.place)
        with errand.part.open(outcome.position) as reader:
            outcome.more = True
            while outcome.more and (outcome.transactions == 0 or time.monotonic() < until):
                outcome.more = _write(errand, transaction, reader, outcome)


def _write(errand: Errand, transaction: Transaction, reader: Reader, outcome: Outcome) -> bool:
    """Write what the reader gives, once; return whether there was anything."""
    records, last, began = 0, None, 0.0
    bad: list[BadRecord] = []
    largest = min(transaction.largest, (errand.largest or 2**31) - AROUND)
    for taken in (fitting(each, largest) for each in reader.take(errand.most)):
        if last is None:
            transaction.begin()
            began = time.monotonic()
        transaction.send(taken.records, errand.topic)
        records += taken.records.num_rows
        last = taken.position
        bad += taken.bad
        if taken.may_end and time.monotonic() - began > _LONGEST:
            break  # the next task goes on here
    if last is None:
        return False
    if bad:
        transaction.send(_letters(errand, bad), errand.dead_letters)
    # Last: the topic of positions is held up from here to the commit only.
    transaction.send(position_record(errand.name, outcome.place, last), TOPIC)
    transaction.commit()
    reader.settle()
    outcome.transactions += 1
    outcome.records += records
    outcome.failed += len(bad)
    outcome.position = last
    if bad:
        outcome.last_failure = f"{bad[-1].error_type}: {bad[-1].error}"
    return True


def fitting(taken: Portion, largest: int) -> Portion:
    """Return the portion without records that are too large for Kafka: these are bad ones.

    >>> portion = fitting(Portion.of([b"1", b"x" * 2000], {}), 1000)
    >>> portion.records.num_rows, portion.bad[0].error
    (1, 'the record has 2000 bytes, and at most 1000 are allowed; raise message.max.bytes of ...')
    """
    if isinstance(taken.records, Copies):
        return taken  # whose reader knows what the topic takes
    if isinstance(taken.records, PlainRecords) and taken.records.longest() <= largest:
        return taken
    sizes = _sizes(taken.records)
    if max(sizes, default=0) <= largest:
        return taken
    bad = [
        # Not the value: a dead letter is a record, too. The key says which one it was.
        BadRecord(
            None,
            f"the record has {size} bytes, and at most {largest} are allowed; raise "
            "message.max.bytes of the connection, or max.message.bytes of the topic",
            "TooLargeError",
            _key(taken.records, row),
        )
        for row, size in enumerate(sizes)
        if size > largest
    ]
    fits = [size <= largest for size in sizes]
    if isinstance(taken.records, PlainRecords):
        return replace(taken, records=taken.records.filter(fits), bad=(*taken.bad, *bad))
    return replace(taken, records=taken.records.filter(pa.array(fits)), bad=(*taken.bad, *bad))


def _key(records: pa.RecordBatch | PlainRecords, row: int) -> bytes | None:
    """Return the key of a record, unless it is itself too long for a dead letter."""
    if isinstance(records, PlainRecords):
        key = records.keys[row] if records.keys else None
    else:
        key = records["key"][row].as_py() if "key" in records.schema.names else None
    return key if key is None or len(key) <= _TEXT else None


def _sizes(records: pa.RecordBatch | PlainRecords) -> list[int]:
    """Return the bytes of each record: key, value and headers."""
    if isinstance(records, PlainRecords):
        return records.sizes()
    names = records.schema.names
    sizes = _lengths(records["value"])
    if "key" in names:
        sizes += _lengths(records["key"])
    if "headers" in names:
        sizes += _headers_sizes(records["headers"])
    found: list[int] = sizes.tolist()
    return found


def _headers_sizes(headers: pa.ListArray) -> np.ndarray:
    """Return how many bytes the headers of each record have, with what Kafka adds to each header."""
    pairs = headers.flatten()
    each = _lengths(pairs.field("key")) + _lengths(pairs.field("value")) + _AROUND_HEADER
    ends = np.cumsum(pc.list_value_length(headers).fill_null(0).to_numpy())
    before = np.concatenate([[0], np.cumsum(each)])[ends]
    return np.diff(before, prepend=0)


def _lengths(texts: pa.Array) -> np.ndarray:
    found: np.ndarray = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)


def _letters(errand: Errand, bad: list[BadRecord]) -> pa.RecordBatch:
    """Return bad records as dead letters, with what is known of them in headers."""
    place = msgspec.json.encode(errand.part.place)
    headers = [
        [
            {"key": "penstock.pipeline", "value": errand.name.encode()},
            {"key": "penstock.stage", "value": b"import"},
            {"key": "penstock.place", "value": place},
            {"key": "penstock.error_type", "value": each.error_type.encode()},
            {"key": "penstock.error", "value": each.error[:_TEXT].encode(errors="replace")},
        ]
        for each in bad
    ]
    return pa.record_batch(
        {
            "key": pa.array([each.key for each in bad], pa.binary()),
            "value": pa.array([(each.value or b"")[:_LETTER] or None for each in bad], pa.binary()),
            "headers": pa.array(headers, _HEADERS),
        }
    )
