"""CSV records to rows under a declared schema: strict, and in bulk where that gives equal results.

Arrow tokenizes all records of a batch at once when no character of them can have another meaning to it;
otherwise, and for bad records, the batch is cut into parts until few records are left to read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.csv_lines import CsvDialect
from penstock.decode.kernels.outcome import Decoded, Failure, MisfitError
from penstock.decode.kernels.text_columns import UNFIT_TEXT, bulk_column, is_text_type, read_cell
from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats.limits import SMALLEST, check_size
from penstock.pipeline.schema import Schema

_MOST_BYTES = 16 * 2**20
_PARTS, _FEW = 8, 64
# What Python takes for a cell at most, without its characters.
_CELL, _WIDEST = 128, 4
_BOM = b"\xef\xbb\xbf"


class _Part(NamedTuple):
    """The rows of some records, and the index of the record of each row."""

    rows: pa.RecordBatch
    origins: np.ndarray[Any, np.dtype[np.int64]]


class CsvKernel:
    """Decodes CSV lines into the columns of a declared schema; a record has one line or several.

    >>> kernel = CsvKernel(Schema.parse("symbol string not null, price double"))
    >>> decoded = kernel.decode(pa.array([b"A,1.5", b"B,x"]))
    >>> decoded.rows.to_pylist(), decoded.failures[0].message
    ([{'symbol': 'A', 'price': 1.5}], "line 1, price: found the text 'x', declared double: a number \
is written like -1.5e3; NaN, Infinity and -Infinity are allowed")
    """

    def __init__(
        self, schema: Schema, dialect: CsvDialect | None = None, *, header: bool = False
    ) -> None:
        for field in schema.fields:
            if not is_text_type(field.type):
                raise ConfigError(
                    f"{field.name}: a field of CSV is one text, not {field.type.ddl()}; "
                    "declare string and convert it with a SQL step"
                )
        self._fields = schema.fields
        self._names = schema.names
        self._arrow = arrow_schema(schema)
        self._bulk = [bulk_column(field.type) for field in schema.fields]
        self._dialect = dialect or CsvDialect()
        self._header = header
        self._one_line = _line_pattern(self._dialect)

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        return self.decode(batch.column("value"))

    def decode(self, values: pa.Array) -> Decoded:
        """Return the rows of the good records, in order, and a failure for each of the others."""
        failures: list[Failure] = []
        parts = [
            part
            for start, count in _slices(values)
            for part in self._parts(values.slice(start, count), start, failures)
        ]
        none = pa.RecordBatch.from_pylist([], schema=self._arrow)
        rows = pa.concat_batches([none, *(part.rows for part in parts)])
        places = np.concatenate([np.zeros(0, "i8"), *(part.origins for part in parts)])
        one_each = (
            len(places) == len(values) and not failures and bool((np.diff(places) == 1).all())
        )
        return Decoded(rows, failures, None if one_each else pa.array(places, pa.int64()))

    def _parts(self, values: pa.Array, start: int, failures: list[Failure]) -> Iterator[_Part]:
        try:
            part = self._all_at_once(values, start)
        except (FormatError, MisfitError, UnicodeDecodeError, *UNFIT_TEXT):
            part = None
        if part is not None:
            yield part
        elif len(values) <= _FEW:
            yield self._one_by_one(values, start, failures)
        else:
            size = max(_FEW, len(values) // _PARTS)
            for at in range(0, len(values), size):
                yield from self._parts(values.slice(at, size), start + at, failures)

    def _all_at_once(self, values: pa.Array, start: int) -> _Part | None:
        """Return the rows of all records; None, or an error, when they must be read one by one."""
        if values.null_count or not len(values):
            return None
        sizes = pc.binary_length(values)
        if pc.min(sizes).as_py() == 0:
            return None
        for value in values.filter(pc.greater(sizes, SMALLEST // _CELL)).to_pylist():
            self._refuse_large(value)
        order, lines = self._without_header(values)
        lines = pc.replace_substring_regex(lines, r"\r?\n\z", "") if _has_newline(lines) else lines
        tokens = self._tokens(lines)
        if tokens is None:
            return None
        columns = [
            self._checked(place, tokens.column(at).combine_chunks())
            for place, at in enumerate(order)
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._arrow)
        counts = pc.add(pc.count_substring(lines, "\n"), 1).to_numpy(zero_copy_only=False)
        origins = np.repeat(np.arange(start, start + len(values)), counts)
        return _Part(rows, origins) if len(origins) == rows.num_rows else None

    def _without_header(self, values: pa.Array) -> tuple[list[int], pa.Array]:
        """Return the place of each column, and the lines after a header that all records share."""
        if not self._header:
            return list(range(len(self._names))), values
        first, newline, _ = values[0].as_py().partition(b"\n")
        header = first + newline
        lines = pc.binary_slice(values, len(header))
        shared = pc.all(pc.starts_with(values, header)).as_py()
        if not shared or not pc.min(pc.binary_length(lines)).as_py():
            raise MisfitError("Header", "the records have different headers, or no lines")
        return self._order(next(self._dialect.lines(header.decode()))), lines

    def _tokens(self, lines: pa.Array) -> pa.Table | None:
        """Return all fields as text, when Arrow's rules cannot differ from those of the dialect."""
        joined = _joined(lines)
        data, quote, escape = joined.to_pybytes(), self._dialect.quote, self._dialect.escape
        str(data, "utf-8")
        has_quotes = quote is not None and quote.encode() in data
        if (
            b"\r" in data
            or data.startswith(_BOM)
            or (escape is not None and escape.encode() in data)
            or (has_quotes and not pc.all(pc.match_substring_regex(lines, self._one_line)).as_py())
        ):
            return None
        # To Arrow an empty line is a row of nulls, however many columns there are.
        if len(self._names) > 1 and (data.startswith(b"\n") or b"\n\n" in data):
            return None
        names = [str(place) for place in range(len(self._names))]
        return csv.read_csv(
            joined,
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=self._dialect.delimiter,
                quote_char=quote if has_quotes else False,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[self._dialect.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _checked(self, place: int, texts: pa.Array) -> pa.Array:
        if self._fields[place].required and texts.null_count:
            raise ValueError("a required value is null")
        return self._bulk[place](texts)

    def _one_by_one(self, values: pa.Array, start: int, failures: list[Failure]) -> _Part:
        rows: list[list[Any]] = []
        origins: list[int] = []
        for index, value in enumerate(values.to_pylist(), start):
            try:
                lines = self._rows(value)
            except MisfitError as misfit:
                failures.append(Failure(index, misfit.error_type, str(misfit)))
                continue
            rows += lines
            origins += [index] * len(lines)
        columns = [
            pa.array([row[place] for row in rows], field.type)
            for place, field in enumerate(self._arrow)
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._arrow)
        return _Part(batch, np.array(origins, "i8"))

    def _rows(self, value: bytes | None) -> list[list[Any]]:
        if not value:
            raise MisfitError("EmptyValue", f"the value is {'null' if value is None else 'empty'}")
        self._refuse_large(value)
        try:
            lines = self._dialect.lines(value.decode())
        except UnicodeDecodeError as error:
            message = f"not UTF-8: byte {error.start}, {error.reason}"
            raise MisfitError("NotUtf8", message) from None
        order = self._order(next(lines)) if self._header else list(range(len(self._names)))
        return [
            self._row(line, number, order)
            for number, line in enumerate(lines, 2 if self._header else 1)
        ]

    def _row(self, line: list[str | None], number: int, order: list[int]) -> list[Any]:
        if len(line) != len(order):
            kind = "MissingField" if len(line) < len(order) else "UnknownField"
            raise MisfitError(
                kind, f"line {number}: found {len(line)} fields, declared {len(order)}"
            )
        return [self._cell(line[at], number, place) for place, at in enumerate(order)]

    def _cell(self, text: str | None, number: int, place: int) -> Any:
        field = self._fields[place]
        where = f"line {number}, {field.name}"
        if text is None:
            if field.required:
                message = f"{where}: found null, declared {field.type.ddl()} not null"
                raise MisfitError("MissingField", message)
            return None
        try:
            return read_cell(text, field.type)
        except MisfitError as misfit:
            raise MisfitError(misfit.error_type, f"{where}: {misfit}") from None

    def _order(self, header: list[str | None]) -> list[int]:
        """Return the place of each declared column in a header."""
        names = [name or "" for name in header]
        unknown = next((name for name in names if name not in self._names), None)
        if unknown is not None:
            message = f"the header has {unknown!r}, which is not declared"
            raise MisfitError("UnknownField", f"{message}; {nearest(unknown, self._names)}")
        missing = next((name for name in self._names if name not in names), None)
        if missing is not None or len(names) != len(self._names):
            twice = "has a name twice" if missing is None else f"lacks the column {missing!r}"
            raise MisfitError("MissingField", f"the header {twice}")
        return [names.index(name) for name in self._names]

    def _refuse_large(self, value: bytes) -> None:
        cells = value.count(self._dialect.delimiter.encode()) + value.count(b"\n") + 1
        try:
            check_size(cells * _CELL + len(value) * _WIDEST, "a CSV record")
        except FormatError as error:
            raise MisfitError("TooLarge", str(error)) from None


def _slices(values: pa.Array) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(values):
        count = len(values) - start
        while count > 1 and _bytes_of(values.slice(start, count)) > _MOST_BYTES:
            count = (count + 1) // 2
        yield start, count
        start += count


def _bytes_of(values: pa.Array) -> int:
    return pc.sum(pc.binary_length(values)).as_py() or 0


def _has_newline(values: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(values, "\n")).as_py())


def _joined(lines: pa.Array) -> pa.Buffer:
    """Return all lines, with a newline after each of them."""
    every = pa.concat_arrays([lines, pa.array([b""], lines.type)])
    ends = pa.array([0, len(every)], pa.int32())
    newline = pa.scalar(b"\n", lines.type)
    return pc.binary_join(pa.ListArray.from_arrays(ends, every), newline)[0].as_buffer()


def _line_pattern(dialect: CsvDialect) -> str:
    """Return what a line with quotes looks like when its quotes have one meaning only."""
    delimiter, quote = re.escape(dialect.delimiter), re.escape(dialect.quote or "")
    quoted = rf"{quote}(?:[^{quote}\r\n]|{quote}{quote})*{quote}"
    field = rf"(?:{quoted}|(?:[^{quote}{delimiter}\r\n][^{delimiter}\r\n]*)?)"
    return rf"\A{field}(?:{delimiter}{field})*\z"
