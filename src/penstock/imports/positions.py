"""The positions of imports: a compacted topic with one partition, in the form of Kafka Connect's offsets.

key ["shop", {"table": "orders"}]      value {"id": 4711}       how far a part was read
key ["shop"]                           value {"claim": 3}       which process runs the import
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError, TerminalError, TransientError
from penstock.kafka import Admin
from penstock.kafka.handle import Handle
from penstock.kafka.kafka_errors import code_of
from penstock.kafka.offsets import LATEST, NO_GROUP, PartitionOffsets
from penstock.pipeline.importing import POSITIONS, Place, Position, key_of
from penstock.retry import retry, wait_for

TOPIC = POSITIONS
SHORT = {"transaction.timeout.ms": 30_000, "message.timeout.ms": 20_000}
"""The settings of transactions that only note something: others wait for one whose process was killed."""
# Longer than any transaction of a part that was killed stays open.
_PATIENCE = 150.0
# A transaction that is being committed has ended by then; one whose task was killed has not.
_SUSPECT = 2.0
_ANSWER = 10.0
_AT_ONCE = 10_000
_PAUSE = 0.2
_KNOWN_WITHIN = 5.0
# How long a broker that has just started may not know its topics.
_STARTING = 30.0
_UNKNOWN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_WHERE = TOPIC, 0


class Known(msgspec.Struct):
    """What the topic said of one import, up to an offset."""

    positions: dict[str, Position] = {}
    claim: int = 0
    until: int = 0


def record_key(name: str, place: str | None) -> bytes:
    """Return the key of a record in the topic.

    >>> record_key("shop", '{"table":"orders"}'), record_key("shop", None)
    (b'["shop",{"table":"orders"}]', b'["shop"]')
    """
    parts = [msgspec.json.encode(name)] + ([place.encode()] if place is not None else [])
    return b"[" + b",".join(parts) + b"]"


def transaction_of(name: str, place: str) -> str:
    """Return the name of a part's transactions; its place may be long and have any letters."""
    return f"{name}.import.{hashlib.sha256(place.encode()).hexdigest()[:16]}"


def position_record(name: str, place: str, position: Position | None) -> pa.RecordBatch:
    """Return the record that notes a position; None forgets it."""
    value = None if position is None else msgspec.json.encode(position)
    return _record(record_key(name, place), value)


def claim_record(name: str, claim: int) -> pa.RecordBatch:
    """Return the record that says which process runs the import."""
    return _record(record_key(name, None), msgspec.json.encode({"claim": claim}))


def _record(key: bytes, value: bytes | None) -> pa.RecordBatch:
    return pa.record_batch({"key": pa.array([key]), "value": pa.array([value], pa.binary())})


def create_topic(connection: Connection) -> None:
    """Create the topic where it is missing, and refuse one that would forget positions."""
    with Admin(connection) as admin:
        require_topic(admin)


def require_topic(admin: Admin) -> None:
    """Create the topic where it is missing, and refuse one that would forget positions."""
    if ensure_topic(admin, TOPIC, 1, {"cleanup.policy": "compact"}):
        return
    policy = {each.name: each.value for each in admin.topic_settings(TOPIC)}["cleanup.policy"]
    if len(admin.partitions([TOPIC])) != 1 or policy != "compact":
        raise ConfigError(
            f"the topic {TOPIC!r} does not keep the positions of imports: it must have one partition "
            f"and cleanup.policy=compact, which is {policy!r}; set it with 'penstock topics alter', "
            "or delete the topic if nothing was imported yet"
        )


def ensure_topic(
    admin: Admin, name: str, partitions: int | None, config: Mapping[str, object]
) -> bool:
    """Create a topic if it is missing; return whether it was. Another process may do the same."""
    if admin.topic_ids([name]):
        return False
    try:
        admin.create_topic(name, partitions, config=config)
    except PenstockError:
        # One that another process has just made is known to its controller first.
        if not wait_for(lambda: admin.topic_ids([name]), within=_KNOWN_WITHIN, every=0.1):
            raise
    return True


def every_position(connection: Connection) -> list[tuple[str, Place, Position]]:
    """Return all positions of all imports of a cluster: name, place, position."""
    with Positions(connection) as positions:
        known = positions.read(None)
    split = (msgspec.json.decode(key) for key in known.positions)
    pairs = zip(split, known.positions.values(), strict=True)
    return [(name, place, position) for (name, place), position in pairs]


class Positions:
    """Reads the topic: everything that was committed before the reading began."""

    def __init__(self, connection: Connection) -> None:
        self._handle = Handle(
            connection,
            "consumer",
            group_id=NO_GROUP,
            enable_auto_commit=False,
            enable_partition_eof=True,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            # At the end of the topic a broker keeps a request for this long before it says so.
            fetch_wait_max_ms=10,
        )
        with self._handle.translated("making a client that reads positions"):
            self._client: Any = Consumer(self._handle.settings())
        uncommitted = {"isolation_level": "read_uncommitted"}
        self._ends = PartitionOffsets(connection, _ANSWER, **uncommitted)

    def __enter__(self) -> Positions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._ends.close()

    def read(
        self,
        name: str | None,
        known: Known | None = None,
        on_open: Callable[[int], None] | None = None,
        suspect: float = _SUSPECT,
    ) -> Known:
        """Return what the topic says of an import now; `known` is what was read of it before.

        Without a name it is about all of them, with their positions by the keys of their records.

        A transaction of another part that is being committed is waited for: what comes after it in the
        topic could not be seen. It is open here for a moment only, its position being its last record;
        unless its task was killed in that moment. After `suspect` seconds `on_open` is called once, with
        the offset at which the oldest transaction begins that is open.
        """
        known = known or Known()
        found = Known(dict(known.positions), known.claim, known.until)
        # With what is not committed yet: the own reading ends where the oldest open transaction begins.
        end = self._end()
        _require_same_topic(known.until, end)
        heard = began = time.monotonic()
        deadline = began + _PATIENCE
        with self._handle.translated("reading positions"):
            self._client.assign([TopicPartition(*_WHERE, known.until)])
            while found.until < end:
                if time.monotonic() > deadline:
                    raise TransientError(
                        f"the positions in {TOPIC!r} could not be read up to their end within "
                        f"{_PATIENCE:g} s: a transaction on it is still open"
                    )
                if taken := self._next():
                    self._take(taken, name, found)
                    heard = time.monotonic()
                elif on_open and time.monotonic() - began > suspect:
                    on_open(found.until)
                    on_open = None
                elif time.monotonic() - heard > _ANSWER / 2:
                    # Is it a transaction that is open, or a broker that is away? The latter raises.
                    self._end()
                    heard = time.monotonic()
            self._client.unassign()  # it would go on asking
        return found

    def _next(self) -> list[Message]:
        """Return what comes next, without a wait for more: `consume` alone takes its whole time-out."""
        first = self._client.poll(0.1)
        return [] if first is None else [first, *self._client.consume(_AT_ONCE, 0)]

    def _end(self) -> int:
        """Return the end of the topic, with what is not committed yet."""

        def again(error: Exception) -> float | None:
            if not isinstance(error, PenstockError) or code_of(error) not in _UNKNOWN:
                return None
            # Raises where no broker answers. One that has just started may know no topics yet.
            self._ends.look_anew()
            return _PAUSE

        ask = partial(self._ends.at, LATEST, [_WHERE])
        return retry(ask, again, within=_STARTING)[_WHERE]

    def _take(self, messages: Iterable[Message], name: str | None, found: Known) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                _note(message, name, found)
            elif error.code() == KafkaError._PARTITION_EOF:
                found.until = max(found.until, message.offset() or 0)
            elif not error.retriable() and error.code() not in _PASSING:
                raise KafkaException(error)


def _require_same_topic(known: int, end: int) -> None:
    if end < known:
        raise TerminalError(
            f"the topic {TOPIC!r} ends at {end}, and was read up to {known}: it was deleted or lost "
            "records, and with them the positions of imports; started again, they would begin from the "
            "start"
        )


_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)


def place_in(message: Message, name: str) -> str | None:
    """Return the part of an import that a record of the topic is about; None for another one."""
    try:
        key = msgspec.json.decode(message.key() or b"", type=list[Any])
    except (ValueError, RecursionError):
        return None
    is_own = len(key) == 2 and key[0] == name and isinstance(key[1], dict)
    return key_of(key[1]) if is_own else None


def _note(message: Message, name: str | None, found: Known) -> None:
    found.until = (message.offset() or 0) + 1
    data = message.value()
    try:
        key = msgspec.json.decode(message.key() or b"", type=list[Any])
        value = msgspec.json.decode(data, type=dict[str, Any]) if data else None
    except (ValueError, RecursionError):
        return  # of another program
    if key == [name]:
        claim = (value or {}).get("claim", 0)
        found.claim = claim if isinstance(claim, int) else found.claim
    elif len(key) == 2 and name in (None, key[0]) and isinstance(key[1], dict):
        place = key_of(key[1])
        if name is None:
            place = record_key(str(key[0]), place).decode()
        if value is None:
            found.positions.pop(place, None)
        else:
            found.positions[place] = value
