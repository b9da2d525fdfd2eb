"""A table straight into messages: columns become keys, values, partitions and timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from msgspec import Struct

from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats.values import Shape, settle, shape

# Rows that are turned into messages between two looks at the deliveries.
_ROWS = 2000
_ANY = -1
Encode = Callable[[Any], bytes]
Batch = list[tuple[Any, Any, int, int]]
"""Value, key, partition and timestamp of each message, as librdkafka takes them."""


class Columns(Struct, frozen=True):
    """Which column is what. Without `value` the whole row is the value."""

    value: str | None = None
    key: str | None = None
    partition: str | None = None
    timestamp: str | None = None

    def batches(self, rows: Any, encode: Encode | None) -> Iterator[Batch]:
        """The messages of a table, or of an iterable of mappings, some thousand at a time.

        >>> rows = [{"id": 1, "name": "a"}]
        >>> list(Columns(value="name", key="id").batches(rows, None))
        [[('a', '1', -1, 0)]]
        """
        chunks = _table_chunks(rows) if _is_table(rows) else _row_chunks(rows)
        for columns, count in chunks:
            yield self._messages(columns, count, encode)

    def _messages(self, columns: dict[str, list[Any]], count: int, encode: Encode | None) -> Batch:
        keys = [None] * count if self.key is None else _keys(self._column(columns, self.key))
        partitions = self._numbers(columns, self.partition, count, _ANY)
        moments = self._numbers(columns, self.timestamp, count, 0)
        return list(zip(self._values(columns, encode), keys, partitions, moments, strict=True))

    def _values(self, columns: dict[str, list[Any]], encode: Encode | None) -> list[Any]:
        if self.value is None:
            whole = (
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            )
            return [(encode or _no_format)(row) for row in whole]
        values = self._column(columns, self.value)
        if encode is None:
            return values
        return [None if value is None else encode(value) for value in values]

    def _numbers(
        self, columns: dict[str, list[Any]], name: str | None, count: int, missing: int
    ) -> Iterable[int]:
        if name is None:
            return repeat(missing, count)
        return [
            missing if number is None else _number(number) for number in self._column(columns, name)
        ]

    @staticmethod
    def _column(columns: dict[str, list[Any]], name: str) -> list[Any]:
        if name not in columns:
            raise ConfigError(f"the rows have no column {name!r}; {nearest(name, list(columns))}")
        return columns[name]


def _is_table(rows: Any) -> bool:
    try:
        return shape(rows) is Shape.TABLE
    except FormatError:
        return False


def _table_chunks(table: Any) -> Iterator[tuple[dict[str, list[Any]], int]]:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    for batch in pa.table(settle(table)).to_batches(max_chunksize=_ROWS):
        names = batch.schema.names
        yield {name: batch.column(name).to_pylist() for name in names}, batch.num_rows


def _row_chunks(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[dict[str, list[Any]], int]]:
    given = iter(rows)
    while chunk := list(islice(given, _ROWS)):
        if not all(isinstance(row, Mapping) for row in chunk):
            kinds = {type(row).__name__ for row in chunk if not isinstance(row, Mapping)}
            raise ConfigError(
                f"rows are a table or mappings of column names to values; given: {', '.join(kinds)}"
            )
        names = dict.fromkeys(name for row in chunk for name in row)
        yield {name: [row.get(name) for row in chunk] for name in names}, len(chunk)


def _keys(values: list[Any]) -> list[Any]:
    return [str(value) if isinstance(value, int) else value for value in values]


def _number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    moment = getattr(value, "timestamp", None)
    if callable(moment):
        return round(float(moment()) * 1000)
    raise FormatError(
        f"a partition or timestamp is a whole number or a time, not {type(value).__name__}"
    )


def _no_format(_row: Any) -> bytes:
    raise ConfigError("a whole row needs a format to become bytes: give format='json' (or another)")
