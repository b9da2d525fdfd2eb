"""Compiles a pair of Avro schemas, the one written with and the one wanted, to readers of columns.

`Readers` of the format decides whether two schemas resolve, and how; the plan repeats its choices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.arrow_kernel import arrow_type
from penstock.decode.kernels.avro.avro_leaves import (
    RANGES,
    Column,
    DurationColumn,
    EnumColumn,
    NullColumn,
    NumberColumn,
    RefusedColumn,
    SpanColumn,
)
from penstock.decode.kernels.avro.avro_nested import (
    ArrayColumn,
    BranchColumn,
    DefaultColumn,
    MapColumn,
    RecordColumn,
    SingleColumn,
    UnionColumn,
)
from penstock.decode.kernels.avro.avro_table import branches_of, column_type
from penstock.decode.kernels.avro.byte_spans import (
    binary,
    decimals,
    text,
    text_as_binary,
    text_first,
    uuid_bytes,
    uuid_text,
)
from penstock.decode.kernels.avro.lanes import Batch
from penstock.errors import ConfigError
from penstock.formats.avro.avro_reader import Readers
from penstock.formats.avro.avro_schema import Names, kind_of, renamed_fields, resolved
from penstock.formats.avro.avro_writer import default_bytes
from penstock.formats.avro.logical import is_duration, logical_of

# The memory of a value that no column needs: it is counted when it is read, whatever its size.
_UNKNOWN = 2**60
_NUMBERS = frozenset(("boolean", "int", "long", "float", "double"))


class Plan:
    """Makes the readers of columns; `cost` is the memory of one of each record, as an object."""

    def __init__(self, written: Names, wanted: Names) -> None:
        self._written = written
        self._wanted = wanted
        self.cost = 0

    def make(self, written: Any, wanted: Any) -> Column:
        """Return the reader of a column; the two schemas resolve."""
        written, wanted = resolved(written, self._written), resolved(wanted, self._wanted)
        if kind_of(written, self._written) == "union":
            branches = [self._branch(branch, wanted) for branch in written]
            return UnionColumn(branches, self._type(wanted))
        if kind_of(wanted, self._wanted) == "union":
            return self._one_of(written, wanted)
        kind = kind_of(wanted, self._wanted)
        if kind in _NUMBERS:
            return self._number(written, wanted)
        method = getattr(self, f"_{kind}", None)
        column: Column = method(written, wanted) if method else self._span(written, wanted)
        return column

    def record(self, written: Any, wanted: Any) -> RecordColumn:
        """Return the reader of a record."""
        return self._record(resolved(written, self._written), resolved(wanted, self._wanted))

    def _type(self, wanted: Any) -> pa.DataType:
        return arrow_type(column_type(wanted, self._wanted))

    def _resolves(self, written: Any, wanted: Any) -> bool:
        try:
            Readers(self._written, self._wanted).make(written, wanted)
        except ConfigError:
            return False
        return True

    def _branch(self, written: Any, wanted: Any) -> Column:
        if not self._resolves(written, wanted):
            return RefusedColumn(self._type(wanted))
        return self.make(written, wanted)

    def _one_of(self, written: Any, wanted: Any) -> Column:
        kind = kind_of(written, self._written)
        if kind == "null":
            return NullColumn(self._type(wanted))
        # The same kind first, as `Readers` does it.
        order = sorted(wanted, key=lambda each: kind_of(each, self._wanted) != kind)
        branch = next(each for each in order if self._resolves(written, each))
        column = self.make(written, branch)
        several = branches_of(wanted, self._wanted)
        if len(several) == 1:
            return column
        place = next(at for at, each in enumerate(several) if each is branch)
        return BranchColumn(column, place, self._type(wanted))

    def _number(self, written: Any, wanted: Any) -> Column:
        allowed = None
        if logical_of(wanted) is not None:
            allowed = RANGES[wanted["type"], wanted["logicalType"]]
        return NumberColumn(self._type(wanted), kind_of(written, self._written), allowed)

    def _span(self, written: Any, wanted: Any) -> Column:
        """Return the reader of bytes, a fixed number of them, or text."""
        if is_duration(wanted):
            return DurationColumn()
        old, new = kind_of(written, self._written), kind_of(wanted, self._wanted)
        size = wanted["size"] if new == "fixed" else None
        if logical_of(wanted) is not None and wanted["logicalType"] == "decimal":
            convert = decimals(wanted["precision"], wanted.get("scale", 0))
            return SpanColumn(
                self._type(wanted), text_first(convert) if old == "string" else convert, size
            )
        if logical_of(wanted) is not None:
            return SpanColumn(pa.string(), uuid_text if size is None else uuid_bytes, size)
        if new == "string":
            return SpanColumn(pa.string(), text)
        return SpanColumn(pa.binary(), text_as_binary if old == "string" else binary, size)

    def _enum(self, written: Any, wanted: Any) -> Column:
        known = set(wanted["symbols"])
        replacement = wanted.get("default")
        return EnumColumn([name if name in known else replacement for name in written["symbols"]])

    def _array(self, written: Any, wanted: Any) -> Column:
        item = self.make(written["items"], wanted["items"])
        read_one = Readers(self._written, self._written).make(written["items"], written["items"])
        return ArrayColumn(self._type(wanted), item, read_one)

    def _map(self, written: Any, wanted: Any) -> Column:
        value = self.make(written["values"], wanted["values"])
        read_one = Readers(self._written, self._written).make(written["values"], written["values"])
        return MapColumn(self._type(wanted), value, read_one)

    def _record(self, written: Any, wanted: Any) -> RecordColumn:
        left = {field["name"]: (at, field) for at, field in enumerate(wanted["fields"])}
        aliases = renamed_fields(written, wanted)
        fields: list[tuple[int | None, Column]] = []
        for field in written["fields"]:
            name = field["name"] if field["name"] in left else aliases.get(field["name"])
            place, target = left.pop(name, (None, None)) if name else (None, None)
            if target is None:
                fields.append((None, self._left_out(field["type"])))
            else:
                fields.append((place, self.make(field["type"], target["type"])))
        fields += [(place, self._added(field)) for place, field in left.values()]
        column = RecordColumn(fields, self._type(wanted))
        self.cost += column.cost
        return column

    def _left_out(self, written: Any) -> Column:
        """Return the reader of a field that is not wanted: its bytes must be right all the same."""
        plan = Plan(self._written, self._written)
        try:
            column_type(written, self._written)
            column = plan.make(written, written)
        except ConfigError:
            self.cost += _UNKNOWN
            return SingleColumn(Readers(self._written, self._written).make(written, written))
        self.cost += plan.cost
        return column

    def _added(self, field: Any) -> Column:
        kind = self._type(field["type"])
        try:
            data = default_bytes(field["type"], field["default"], self._wanted)
            batch = Batch(pa.array([data], pa.binary()))
            lanes = batch.lanes()
            value = Plan(self._wanted, self._wanted).make(field["type"], field["type"]).read(lanes)
        except Exception:  # a default may be anything, and matters only when a record is read
            return RefusedColumn(kind)
        bad = bool(np.any(batch.bad))
        return RefusedColumn(kind) if bad else DefaultColumn(value)
