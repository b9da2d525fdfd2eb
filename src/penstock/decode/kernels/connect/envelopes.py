"""Records of JsonConverter that have their schema with them: `{"schema": ..., "payload": ...}`.

Connect writes the same bytes before the payload of each record of a schema. Records are grouped by them
without being parsed; only a record of another form is parsed by itself. A schema text is parsed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.connect.aligned import Aligned, moved, scattered
from penstock.decode.kernels.connect.payloads import PayloadReader
from penstock.decode.kernels.json.strict import refuse_deep, refuse_large
from penstock.decode.kernels.outcome import Failure, MisfitError
from penstock.encode.column_bytes import joined
from penstock.errors import ConfigError, SchemaChangedError
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.json_schemas import from_document
from penstock.formats.connect.schema import Schema
from penstock.formats.connect.schema_merging import merged
from penstock.formats.registry.registry_client import Bounded

Places = np.ndarray[Any, np.dtype[np.int64]]
Partition = tuple[str, int]
_HEAD, _MIDDLE = b'{"schema":', b',"payload":'
_EXPECTED = (
    'with schemas.enable a record is an object of "schema" and "payload" and nothing else; for plain '
    "JSON set schemas.enable=false"
)
# More forms than this in one batch: the rest is parsed record by record.
_MOST_FORMS = 64


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    schema: msgspec.Raw
    payload: msgspec.Raw


_parse = msgspec.json.Decoder(_Envelope).decode


@dataclass(frozen=True)
class EnvelopePlan:
    """What a worker needs: the schema of the column (None: no record was there yet), and how to follow.

    `known_ends` are the offsets up to which schemas were looked at when the column was decided.
    """

    wanted: Schema | None
    replace_null: bool = True
    evolves: bool = True
    known_ends: Mapping[Partition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Origins:
    """Where the records of a batch are from, for messages and to know the new ones."""

    topics: pa.Array
    partitions: pa.Array
    offsets: pa.Array

    def at(self, place: int) -> tuple[Partition, int]:
        """Return partition and offset of one record."""
        where = self.topics[place].as_py(), self.partitions[place].as_py()
        return where, self.offsets[place].as_py()


class EnvelopeReader:
    """Reads values that have their schema with them.

    Raises SchemaChangedError for a new record whose schema has more than the column: the next attempt has
    it. In a record that is older than the column, what the column lacks is left out.
    """

    def __init__(self, plan: EnvelopePlan) -> None:
        self._plan = plan
        self._type = arrow_type(plan.wanted) if plan.wanted else pa.string()
        self._readers: Bounded[bytes, _Reader] = Bounded()

    def __call__(self, values: pa.Array, origins: Origins) -> Aligned:
        """Return the value of each record; those that are null stay null."""
        made: list[tuple[Places, pa.Array]] = []
        failures: list[Failure] = []
        for text, places, documents in _groups(values, failures):
            reader = self._reader(text)
            read = reader.read(documents, lambda at, own=places: origins.at(int(own[at])))
            made.append((places, read.values))
            failures += moved(read.failures, places)
        return Aligned(self._joined(made, len(values)), failures)

    def _joined(self, made: Sequence[tuple[Places, pa.Array]], size: int) -> pa.Array:
        if not made:
            return pa.nulls(size, self._type)
        places = np.concatenate([each for each, _ in made])
        return scattered(pa.concat_arrays([each for _, each in made]), places, size)

    def _reader(self, text: bytes) -> _Reader:
        reader = self._readers.get(text)
        if reader is None:
            reader = self._readers[text] = _Reader(text, self._plan, self._type)
        return reader


class _Reader:
    """Reads the payloads of one schema text into the column."""

    def __init__(self, text: bytes, plan: EnvelopePlan, type_: pa.DataType) -> None:
        self._plan = plan
        self._type = type_
        self._refusal: tuple[str, str] | None = None
        self._change: str | None = None
        self._payloads: PayloadReader | None = None
        try:
            self._decide(parsed_schema(text))
        except ConfigError as error:
            self._refusal = ("IncompatibleSchema", f"its schema does not fit the column: {error}")

    def _decide(self, written: Schema | None) -> None:
        plan = self._plan
        if written is None:
            return
        arrow_type(written)
        if plan.wanted is None:
            self._change = "the first record with a schema came"
            return
        both = merged(plan.wanted, written)
        if arrow_type(both) != self._type:
            self._change = f"its schema has more than the column of type {self._type}"
        self._payloads = PayloadReader(written, plan.replace_null, plan.wanted)

    def read(self, documents: pa.Array, origin: Any) -> Aligned:
        """Return the values of payloads, as objects that have nothing else."""
        if self._change and len(documents):
            self._follow(documents, origin)
        if self._payloads is not None:
            return self._payloads.documents(documents)
        if self._refusal is None:
            return self._without_schema(documents)
        failures = [Failure(at, *self._refusal) for at in range(len(documents))]
        return Aligned(pa.nulls(len(documents), self._type), failures)

    def _follow(self, documents: pa.Array, origin: Any) -> None:
        ends = self._plan.known_ends
        for at in range(len(documents)):
            where, offset = origin(at)
            if self._plan.wanted is not None and offset < ends.get(where, 0):
                continue
            message = f"record {offset} of {where[0]}-{where[1]}: {self._change}"
            if self._plan.evolves:
                raise SchemaChangedError(message)
            raise ConfigError(f"{message}; set 'evolve: follow' to go on with it")

    def _without_schema(self, documents: pa.Array) -> Aligned:
        """Return nulls for payloads that are null; any other one needs a schema."""
        message = "its schema is null, and a value that is not null needs one"
        nothing = pc.equal(documents, pa.scalar(b'{"payload":null}'))
        failures = [
            Failure(int(at), "IncompatibleSchema", message)
            for at in np.flatnonzero(~nothing.to_numpy(zero_copy_only=False))
        ]
        return Aligned(pa.nulls(len(documents), self._type), failures)


@lru_cache(maxsize=256)
def parsed_schema(text: bytes) -> Schema | None:
    """Return the schema of a text of JSON; None for null.

    >>> parsed_schema(b'{"type": "int32", "optional": true}').optional
    True
    """
    try:
        document = orjson.loads(text)
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}") from None
    return None if document is None else from_document(document)


def schema_text(record: bytes | None) -> bytes | None:
    """Return the text of the schema in a record; None where the record is not of this form.

    >>> schema_text(b'{"schema": {"type":"string"}, "payload": "a"}')
    b'{"type":"string"}'
    """
    try:
        return bytes(_opened(record).schema) if record else None
    except MisfitError:
        return None


def _opened(record: bytes) -> _Envelope:
    try:
        refuse_large(record)
        refuse_deep(record)
        str(record, "utf-8")
        return _parse(record)
    except msgspec.ValidationError as error:
        raise MisfitError("NoSchema", f"{_EXPECTED}: {error}") from None
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise MisfitError("MalformedJson", f"not JSON: {error}") from None


def _groups(values: pa.Array, failures: list[Failure]) -> Iterator[tuple[bytes, Places, pa.Array]]:
    """Give the records of each schema text: their places, and objects of the payload alone."""
    left: Places = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    single: list[int] = []
    for _ in range(_MOST_FORMS):
        if not len(left):
            break
        begin = _begin_of(values[int(left[0])].as_py())
        if begin is None:
            single.append(int(left[0]))
            left = left[1:]
            continue
        own = values if len(left) == len(values) else values.take(pa.array(left))
        same = pc.starts_with(own, begin).to_numpy(zero_copy_only=False)
        members = own if same.all() else own.filter(pa.array(same))
        text = begin[len(_HEAD) : -len(_MIDDLE)]
        yield text, left[same], pc.binary_replace_slice(members, 0, len(begin), b'{"payload":')
        left = left[~same]
    yield from _parsed_groups(values, [*single, *left.tolist()], failures)


def _begin_of(record: bytes) -> bytes | None:
    """Return all bytes before the payload; None where Connect would write another form."""
    text = schema_text(record)
    begin = _HEAD + (text or b"") + _MIDDLE
    return begin if text is not None and record.startswith(begin) else None


def _parsed_groups(
    values: pa.Array, places: list[int], failures: list[Failure]
) -> Iterator[tuple[bytes, Places, pa.Array]]:
    groups: dict[bytes, list[int]] = defaultdict(list)
    payloads: dict[int, bytes] = {}
    for place in places:
        try:
            envelope = _opened(values[place].as_py())
        except MisfitError as error:
            failures.append(Failure(place, error.error_type, str(error)))
            continue
        groups[bytes(envelope.schema)].append(place)
        payloads[place] = bytes(envelope.payload)
    for text, members in groups.items():
        own = pa.array([payloads[at] for at in members], pa.binary())
        yield text, np.array(members, np.int64), joined(b'{"payload":', own, b"}")
