"""A table straight into messages: columns become keys, values, partitions and timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from penstock.errors import ConfigError, FormatError, missing_extra, nearest
from penstock.formats.format_values import Shape, kind, settle, shape
from penstock.kafka.producing.arguments import TAKEN, bytes_of, key_of, moment_of, partition_of

# Rows that are turned into messages between two looks at the deliveries.
_ROWS = 2000
Encode = Callable[[Any], bytes]
Batch = list[tuple[Any, Any, int, int]]
"""Value, key, partition and timestamp of each message, as librdkafka takes them."""


class Columns(Struct, frozen=True):
    """Which column is what. Without `value` the whole row is the value."""

    value: str | None = None
    key: str | None = None
    partition: str | None = None
    timestamp: str | None = None

    def batches(
        self, rows: Any, encode: Encode | None, encode_key: Callable[[Any], Any] = key_of
    ) -> Iterator[Batch]:
        """Return the messages of a table, or of an iterable of mappings, some thousand at a time.

        >>> rows = [{"id": 1, "name": "a"}]
        >>> list(Columns(value="name", key="id").batches(rows, None))
        [[('a', '1', -1, 0)]]
        """
        for chunk in _table_chunks(rows) if _is_table(rows) else _row_chunks(rows):
            columns = (
                self._values(chunk, encode),
                _each(chunk, self.key, encode_key, None),
                _each(chunk, self.partition, partition_of, -1),
                _each(chunk, self.timestamp, moment_of, 0),
            )
            yield list(zip(*columns, strict=True))

    def _values(self, chunk: _Chunk, encode: Encode | None) -> list[Any]:
        if self.value is None:
            return [(encode or _no_format)(row) for row in chunk.rows()]
        values = chunk.column(self.value)
        if encode is not None:
            return [None if value is None else encode(value) for value in values]
        # One look at the types costs less than one at each value.
        return values if set(map(type, values)) <= TAKEN else list(map(bytes_of, values))


class _Rows(Struct, frozen=True):
    """Rows that are mappings; a name that one of them does not have is a null."""

    mappings: list[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.mappings)

    def rows(self) -> Iterable[Mapping[str, Any]]:
        return self.mappings

    def column(self, name: str) -> list[Any]:
        if not any(name in row for row in self.mappings):
            raise _no_column(name, dict.fromkeys(name for row in self.mappings for name in row))
        return [row.get(name) for row in self.mappings]


class _Table(Struct, frozen=True):
    """Some rows of an Arrow table; only the columns that are asked for become Python objects."""

    batch: Any

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def rows(self) -> Iterable[dict[str, Any]]:
        names = self.batch.schema.names
        columns = [self.column(name) for name in names]
        if not columns:
            return [{} for _ in range(len(self))]
        return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))

    def column(self, name: str) -> list[Any]:
        if name not in self.batch.schema.names:
            raise _no_column(name, self.batch.schema.names)
        values: list[Any] = self.batch.column(name).to_pylist()
        return values


_Chunk = _Rows | _Table


def _each(
    chunk: _Chunk, name: str | None, convert: Callable[[Any], Any], missing: Any
) -> list[Any]:
    if name is None:
        return [missing] * len(chunk)
    return [missing if value is None else convert(value) for value in chunk.column(name)]


def _is_table(rows: Any) -> bool:
    try:
        return shape(rows) is Shape.TABLE
    except FormatError:
        return False


def _table_chunks(table: Any) -> Iterator[_Chunk]:
    try:
        from penstock.formats.arrow.arrow_columns import to_table  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a table into records") from missing
    records = to_table(settle(table))
    names = records.schema.names
    if len(set(names)) < len(names):
        raise ConfigError(f"the table has two columns of one name: {', '.join(names)}; rename one")
    return map(_Table, records.to_batches(max_chunksize=_ROWS))


def _row_chunks(rows: Iterable[Mapping[str, Any]]) -> Iterator[_Chunk]:
    if not isinstance(rows, Iterable):
        raise _no_rows({kind(rows)})
    given = iter(rows)
    while chunk := list(islice(given, _ROWS)):
        if others := {kind(row) for row in chunk if not isinstance(row, Mapping)}:
            raise _no_rows(others)
        yield _Rows(chunk)


def _no_rows(given: set[str]) -> ConfigError:
    return ConfigError(
        f"rows are a table or mappings of column names to values; given: {', '.join(sorted(given))}"
    )


def _no_column(name: str, names: Iterable[str]) -> ConfigError:
    return ConfigError(f"the rows have no column {name!r}; {nearest(name, list(names))}")


def _no_format(_row: Any) -> bytes:
    raise ConfigError("a whole row needs a format to become bytes: give format='json' (or another)")
