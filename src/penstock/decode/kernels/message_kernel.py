"""Records that are whole Arrow or DolphinDB values, to rows of a declared schema.

Neighbours with equal types become one table and are converted at once; only if that fails is each of them
converted alone, for its own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.message_table import MessageTable
from penstock.decode.kernels.outcome import Decoded, Failure, MisfitError, Volume
from penstock.errors import FormatError
from penstock.formats.arrow import read_stream
from penstock.formats.dolphindb import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.dolphindb_objects import of_objects
from penstock.formats.dolphindb.wire_reading import read_object
from penstock.formats.format_values import Shape
from penstock.pipeline.schema import Schema

Read = Callable[[bytes, MessageTable], pa.Table]


@dataclass(frozen=True)
class _Message:
    index: int
    table: pa.Table


class MessageKernel:
    """Decodes records of one format: `read` makes a table of the bytes of one record."""

    def __init__(self, schema: Schema, read: Read) -> None:
        self._columns = MessageTable(schema)
        self._read = read

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        return self.decode(batch.column("value"))

    def decode(self, values: pa.Array) -> Decoded:
        """Return the rows of the good records, in order, and a failure for each of the others."""
        failures: list[Failure] = []
        messages = list(self._messages(values, failures))
        rows, origins = [], []
        for _, group in groupby(messages, lambda message: message.table.schema):
            for part, batch in self._converted(list(group), failures):
                rows.append(batch)
                origins += [np.repeat(each.index, each.table.num_rows) for each in part]
        none = pa.RecordBatch.from_pylist([], schema=self._columns.arrow_schema)
        failures.sort(key=lambda failure: failure.index)
        places = pa.array(np.concatenate([np.zeros(0, "i8"), *origins]), pa.int64())
        return Decoded(pa.concat_batches([none, *rows]), failures, places)

    def _messages(self, values: pa.Array, failures: list[Failure]) -> Iterator[_Message]:
        volume = Volume()
        for index, value in enumerate(values.to_pylist()):
            try:
                message = _Message(index, self._table(value))
            except (FormatError, MisfitError) as error:
                failures.append(_failure(index, error))
            else:
                volume.add(self._columns.size_of(message.table))
                yield message

    def _table(self, value: bytes | None) -> pa.Table:
        if not value:
            raise MisfitError("EmptyValue", f"the value is {'null' if value is None else 'empty'}")
        table = self._read(value, self._columns)
        if not table.num_columns:  # Arrow would forget how many rows it has
            raise MisfitError("WrongShape", "found a table or a mapping without columns")
        return table

    def _converted(
        self, messages: Sequence[_Message], failures: list[Failure]
    ) -> Iterator[tuple[Sequence[_Message], pa.RecordBatch]]:
        """Convert all at once; where that fails, halve until the record is found."""
        try:
            table = pa.concat_tables([message.table for message in messages])
            yield messages, self._columns.rows(table)
        except (FormatError, MisfitError) as error:
            if len(messages) == 1:
                failures.append(_failure(messages[0].index, error))
                return
            middle = len(messages) // 2
            yield from self._converted(messages[:middle], failures)
            yield from self._converted(messages[middle:], failures)


def arrow_kernel(schema: Schema) -> MessageKernel:
    """Return the kernel of Arrow IPC streams.

    >>> from penstock.formats import find_format
    >>> value = find_format("arrow").encode(pa.table({"n": [1, 2]}))
    >>> arrow_kernel(Schema.parse("n bigint")).decode(pa.array([value])).rows.to_pylist()
    [{'n': 1}, {'n': 2}]
    """
    return MessageKernel(schema, _read_arrow)


def dolphindb_kernel(schema: Schema) -> MessageKernel:
    """Return the kernel of DolphinDB's binary values.

    >>> from penstock.formats import find_format
    >>> value = find_format("dolphindb").encode([1, 2])
    >>> dolphindb_kernel(Schema.parse("n bigint")).decode(pa.array([value])).rows.to_pylist()
    [{'n': 1}, {'n': 2}]
    """
    return MessageKernel(schema, _read_dolphindb)


def _failure(index: int, error: FormatError | MisfitError) -> Failure:
    kind = error.error_type if isinstance(error, MisfitError) else "FormatError"
    return Failure(index, kind, str(error))


def _read_arrow(value: bytes, columns: MessageTable) -> pa.Table:
    table, shape = read_stream(value)
    if shape is Shape.TABLE:
        return table.replace_schema_metadata(None)
    column = table.column(0)
    if shape is not Shape.MAPPING:
        return columns.one_column(column)
    if not pa.types.is_struct(column.type):
        raise FormatError(f"the stream is marked as a mapping, but holds {column.type}")
    return pa.Table.from_struct_array(column)


def _read_dolphindb(value: bytes, columns: MessageTable) -> pa.Table:
    found = read_object(value)
    if isinstance(found, pa.Table):
        return found
    if isinstance(found, Dictionary):
        return _one_row(found)
    if isinstance(found, Pair):
        found = found.items
    elif isinstance(found, ValueSet):
        found = found.members
    elif isinstance(found, Matrix | AnyVector):
        kind = "a matrix" if isinstance(found, Matrix) else "a vector of ANY"
        raise MisfitError("WrongShape", f"found {kind}; a table, a vector or a scalar is expected")
    return columns.one_column(found if isinstance(found, pa.Array) else _one_item(found))


def _one_row(found: Dictionary) -> pa.Table:
    if not all(isinstance(name, str) for name in found):
        raise MisfitError("WrongShape", "found a dictionary whose keys are not text")
    return pa.table([_one_item(found[name]) for name in found], list(found))


def _one_item(value: Any) -> pa.Array:
    if isinstance(value, pa.Array):
        ends = pa.array([0, len(value)], pa.int32())
        return pa.ListArray.from_arrays(ends, value)
    array = pa.nulls(1) if value is None else of_objects([value])
    if isinstance(array, AnyVector):
        raise MisfitError("WrongShape", f"found {type(value).__name__} where a scalar is expected")
    return array
