"""Records that name their schema by an id: each is read by the schema that it was written with.

The records of a batch are grouped by id, each group is read as a whole, and the rows come out in the
order of the records. Schemas and their readers are kept for the life of the process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.merging import merged, of_records
from penstock.decode.kernels.outcome import Decoded, Failure
from penstock.errors import ConfigError, SchemaChangedError
from penstock.formats.registry import Registered, Registry
from penstock.formats.registry import Schema as Registration
from penstock.formats.registry.registry_client import Bounded
from penstock.formats.registry.registry_options import RegistryOptions
from penstock.pipeline.schema import Schema

BodyReader = Callable[[pa.Array], tuple[pa.RecordBatch, list[Failure]]]
# A zero byte, and four bytes of id.
_HEAD = 5


class FormatColumns(ABC):
    """How one format maps a schema to columns, and reads bodies that were written with another one."""

    kind: ClassVar[str]
    # The registry's parameter `format`.
    form: ClassVar[str] = ""

    @abstractmethod
    def table_schema(self, schema: Registration, registry: Registry | None) -> Schema:
        """Return the columns; ConfigError where a table cannot have them."""

    @abstractmethod
    def bodies(
        self, written: Registration, wanted: Registration, registry: Registry | None
    ) -> BodyReader:
        """Return what reads bodies into the columns of `wanted`; ConfigError where that cannot be."""


@dataclass(frozen=True)
class Wanted:
    """The schema whose columns the table has, and where it is registered; version 0: nowhere."""

    schema: Registration
    subject: str = ""
    version: int = 0
    id: int = 0

    @classmethod
    def registered(cls, found: Registered) -> Wanted:
        """Return a version of a subject."""
        return cls(found.schema, found.subject, found.version, found.id)


@dataclass(frozen=True)
class RegistryPlan:
    """Everything that a worker needs to read the records."""

    columns: FormatColumns
    registry: RegistryOptions | None
    wanted: Wanted
    # Whether the table follows the subject's latest version, and whether it may gain columns.
    latest: bool = False
    evolves: bool = False
    # Whether a schema that does not fit stops the pipeline; its records are dead letters otherwise.
    stops: bool = False

    def table_schema(self) -> Schema:
        """Return the columns of the table."""
        client = self.registry.client() if self.registry else None
        return self.columns.table_schema(self.wanted.schema, client)


@lru_cache(maxsize=64)
def registry_kernel(plan: RegistryPlan) -> RegistryKernel:
    """Return the kernel of this process for a plan."""
    return RegistryKernel(plan)


class RegistryKernel:
    """Reads records by the schemas that they name, or all by one schema where there is no registry."""

    def __init__(self, plan: RegistryPlan) -> None:
        self._plan = plan
        self._client = plan.registry.client() if plan.registry else None
        self._table = plan.table_schema()
        self._arrow = arrow_schema(self._table)
        self._readers: Bounded[int, BodyReader] = Bounded()

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        values = batch.column("value")
        present = pc.is_valid(values)
        failures = [
            Failure(int(at), "EmptyValue", "the record has no value")
            for at in np.flatnonzero(~present.to_numpy(zero_copy_only=False))
        ]
        if self._client is None:
            groups = [(0, np.flatnonzero(present.to_numpy(zero_copy_only=False)))]
        else:
            groups, headless = _by_schema(values)
            failures += headless
        return self._joined(values, groups, failures)

    def _joined(
        self, values: pa.Array, groups: Sequence[tuple[int, np.ndarray]], failures: list[Failure]
    ) -> Decoded:
        parts = [(pa.array([], pa.int64()), Decoded(_no_rows(self._arrow), ()))]
        for schema_id, members in groups:
            own = values if len(members) == len(values) else values.take(pa.array(members))
            bodies = own if self._client is None else pc.binary_replace_slice(own, 0, _HEAD, b"")
            decoded = of_records(*self._reader(schema_id)(bodies), len(members))
            if len(members) == len(values):
                return decoded
            parts.append((pa.array(members, pa.int64()), decoded))
        return merged(parts, failures)

    def _reader(self, schema_id: int) -> BodyReader:
        reader = self._readers.get(schema_id)
        if reader is not None:
            return reader
        client, plan = self._client, self._plan
        if client is None:
            reader = plan.columns.bodies(plan.wanted.schema, plan.wanted.schema, None)
        else:
            written = client.find(schema_id, plan.columns.form)
            if written is None:  # not kept: it may be registered in a moment
                return self._refusing(
                    "UnknownSchema",
                    f"the registry at {client.url} has no schema {schema_id}: the record was written "
                    "with another registry, or is not of this format",
                )
            wanted = plan.wanted if schema_id == plan.wanted.id else self._newest(client)
            reader = self._compatible(schema_id, written, wanted, client)
        self._readers[schema_id] = reader
        return reader

    def _compatible(
        self, schema_id: int, written: Registration, wanted: Wanted, client: Registry
    ) -> BodyReader:
        try:
            return _reader_of(self._plan.columns, written, wanted.schema, client)
        except ConfigError as error:
            table = (
                f"version {wanted.version} of {wanted.subject!r}" if wanted.version else "the table"
            )
            message = f"schema {schema_id} does not fit {table}: {error}"
            if self._plan.stops:
                raise ConfigError(
                    f"{message}; correct the schema, or set 'incompatible: dead_letters'"
                ) from error
            return self._refusing("IncompatibleSchema", message)

    def _newest(self, client: Registry) -> Wanted:
        """Return the version to read into; raise where the newest has other columns than the table.

        One with the same columns may know more than the table's: the names of an enum, say.
        """
        plan, wanted = self._plan, self._plan.wanted
        if not plan.latest or plan.registry is None:
            return wanted
        newest = plan.registry.fresh_client().latest(wanted.subject, plan.columns.form)
        if newest.id == wanted.id:
            return wanted
        try:
            table = plan.columns.table_schema(newest.schema, client)
        except ConfigError:
            return wanted  # no table can have it: its records do not fit, and say so
        if table == self._table:
            return Wanted.registered(newest)
        message = (
            f"version {newest.version} of subject {wanted.subject!r} changes the columns of version "
            f"{wanted.version}: {_difference(self._table, table)}"
        )
        if plan.evolves:
            raise SchemaChangedError(message)
        raise ConfigError(
            f"{message}; set 'evolve: follow' to go on with them, or 'version: {wanted.version}' to "
            "go on without"
        )

    def _refusing(self, error_type: str, message: str) -> BodyReader:
        def refuse(bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
            failures = [Failure(index, error_type, message) for index in range(len(bodies))]
            return _no_rows(self._arrow), failures

        return refuse


def _reader_of(
    columns: FormatColumns, written: Registration, wanted: Registration, client: Registry
) -> BodyReader:
    if written.kind != columns.kind:
        raise ConfigError(f"it is {written.kind}, not {columns.kind}")
    return columns.bodies(written, wanted, client)


def _by_schema(values: pa.Array) -> tuple[list[tuple[int, np.ndarray]], list[Failure]]:
    """Group the places of the records by schema id; a failure for each that has none."""
    if not len(values):
        return [], []
    heads, size = _heads(values)
    has_id = (size >= _HEAD) & (heads[:, 0] == 0)
    ids = np.ascontiguousarray(heads[:, 1:]).view(">u4").ravel()
    failures = [
        Failure(int(at), "NoSchemaId", _headless(values[int(at)].as_py()[:_HEAD]))
        for at in np.flatnonzero(~has_id & (size >= 0))
    ]
    places = np.flatnonzero(has_id)
    ids = ids[has_id]
    order = np.argsort(ids, kind="stable")
    found, starts = np.unique(ids[order], return_index=True)
    groups = np.split(places[order], starts[1:])
    return [(int(one), members) for one, members in zip(found, groups, strict=True)], failures


def _heads(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the first bytes of each value (of shorter ones anything), and its size; -1 for a null."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    size = np.diff(ends)
    size[~pc.is_valid(values).to_numpy(zero_copy_only=False)] = -1
    content = np.frombuffer(data or b"", np.uint8)
    if len(content) < _HEAD:
        return np.full((len(values), _HEAD), 0xFF, np.uint8), size
    starts = np.minimum(ends[:-1], len(content) - _HEAD)
    return content[starts[:, None] + np.arange(_HEAD)], size


def _headless(head: bytes) -> str:
    return (
        f"bytes that begin with {head.hex(' ') or 'nothing'} carry no schema id: a zero byte and four "
        "bytes of id were expected; were they written with a schema registry?"
    )


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _difference(old: Schema, new: Schema) -> str:
    before = {field.name: field.ddl() for field in old.fields}
    after = {field.name: field.ddl() for field in new.fields}
    added = [f"{ddl} is new" for name, ddl in after.items() if name not in before]
    gone = [f"{name} is gone" for name in before if name not in after]
    changed = [
        f"{before[name]} is now {ddl}"
        for name, ddl in after.items()
        if name in before and before[name] != ddl
    ]
    return ", ".join([*added, *changed, *gone]) or "their order"
