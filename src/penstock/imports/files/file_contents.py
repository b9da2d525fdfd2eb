"""What a file's content means: lines, CSV, JSON, Parquet or one record, from where it was left.

Each form yields pieces: values, bad records, and where the piece ends (in bytes, elements or rows).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.encode.json_columns_text import json_encode
from penstock.errors import TerminalError
from penstock.imports.files.watched_file import WatchedFile
from penstock.pipeline.importing import BadRecord

_AT_ONCE = 5_000
_LARGEST = 256 * 2**20
_LONGEST = 16 * 2**20


class Piece(NamedTuple):
    """Some records of a file, and where they end."""

    values: list[bytes]
    bad: list[BadRecord]
    end: int


Contents = Callable[[WatchedFile, int, bool], Iterator[Piece]]
"""Yields the pieces of a file from a place on; whether the file is complete."""


def lines(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield lines as they are, without their ends."""
    for found, bad, end in _lines(file, at, complete):
        yield Piece([line.rstrip(b"\r\n") for line in found], bad, end)


def json_lines(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield lines that are JSON documents; empty ones are left out."""
    for found, bad, end in _lines(file, at, complete):
        values = []
        for line in (line.strip() for line in found):
            try:
                if line:
                    msgspec.json.decode(line, type=msgspec.Raw)
                    values.append(line)
            except msgspec.DecodeError as error:
                bad.append(BadRecord(line, f"{file.path}: {error}", "DecodeError"))
        yield Piece(values, bad, end)


def csv_rows(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield rows as JSON objects, named by the first row."""
    with file.open() as stream:
        first = Rows(stream, complete)
        header = next(first, None)
    if header is None:
        return
    at = at or first.end
    with file.open() as stream:
        _skip(stream, at)
        rows = Rows(stream, complete, at)
        while found := [*islice(rows, _AT_ONCE)]:
            values, bad = [], []
            for row in found:
                if isinstance(row, BadRecord):
                    bad.append(row)
                elif isinstance(header, BadRecord) or len(row) != len(header):
                    wanted = 0 if isinstance(header, BadRecord) else len(header)
                    text = f"{file.path}: a row of {len(row)} values, and the header has {wanted}"
                    bad.append(BadRecord(",".join(row).encode(), text))
                else:
                    values.append(msgspec.json.encode(dict(zip(header, row, strict=True))))
            yield Piece(values, bad, rows.end)


def json_array(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield the elements of one array; the file is read as a whole."""
    if not complete:
        return
    try:
        elements = msgspec.json.decode(_whole(file), type=list[msgspec.Raw])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        yield Piece([], [BadRecord(None, f"{file.path} is not a JSON array: {error}")], 1)
        return
    for start in range(at, len(elements), _AT_ONCE):
        some = elements[start : start + _AT_ONCE]
        yield Piece([bytes(each) for each in some], [], start + len(some))


def parquet_rows(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield the rows of a Parquet file as JSON objects."""
    if not complete:
        return
    try:
        table = pq.ParquetFile(file.path)
    except pa.ArrowInvalid as error:
        yield Piece([], [BadRecord(None, f"{file.path} is not a Parquet file: {error}")], 1)
        return
    with table:
        end = 0
        for batch in table.iter_batches(_AT_ONCE):
            start, end = end, end + batch.num_rows
            if end > at:
                rows = batch.slice(max(0, at - start)).to_struct_array()
                yield Piece(json_encode(rows.type)(rows).to_pylist(), [], end)


def whole_file(file: WatchedFile, at: int, complete: bool) -> Iterator[Piece]:
    """Yield the file as one record."""
    if complete and at == 0:
        yield Piece([_whole(file)], [], 1)


FORMS: dict[str, Contents] = {
    "lines": lines,
    "csv": csv_rows,
    "json_lines": json_lines,
    "json_array": json_array,
    "parquet": parquet_rows,
    "whole": whole_file,
}
GROWING = frozenset({"lines", "csv", "json_lines"})


class Rows(Iterator["list[str] | BadRecord"]):
    """The rows of a CSV file, and where each of them ends; one that is cut off waits for its rest."""

    def __init__(self, stream: BinaryIO, complete: bool, at: int = 0) -> None:
        self.end = at
        self._fed = at
        self._complete = complete
        self._exhausted = False
        self._line = b""
        self._lines = _complete_lines(stream, complete)
        self._reader = csv.reader(self._feed(), strict=True)

    def _feed(self) -> Iterator[str]:
        for line, size in self._lines:
            first = self._fed == 0
            self._line = line or b""
            self._fed += size
            if line is None:
                raise csv.Error(_too_long(size))
            yield line.decode("utf-8-sig" if first else "utf-8")
        self._exhausted = True

    def __next__(self) -> list[str] | BadRecord:
        try:
            row: list[str] | BadRecord = next(self._reader)
        except (csv.Error, UnicodeDecodeError) as error:
            if self._exhausted and not self._complete:
                raise StopIteration from None
            self._reader = csv.reader(self._feed(), strict=True)
            row = BadRecord(self._line, f"not a CSV row: {error}", type(error).__name__)
        self.end = self._fed
        return row


def _lines(
    file: WatchedFile, at: int, complete: bool
) -> Iterator[tuple[list[bytes], list[BadRecord], int]]:
    with file.open() as stream:
        _skip(stream, at)
        found = _complete_lines(stream, complete)
        while some := [*islice(found, _AT_ONCE)]:
            at += sum(size for _, size in some)
            bad = [
                BadRecord(None, f"{file.path}: {_too_long(size)}", "TooLargeError")
                for line, size in some
                if line is None
            ]
            yield [line for line, _ in some if line is not None], bad, at


def _complete_lines(stream: BinaryIO, complete: bool) -> Iterator[tuple[bytes | None, int]]:
    """Yield lines with their ends, and their sizes; None for one that is too long to be a record.

    The last one, without an end, is there only of a complete file.
    """
    while line := stream.readline(_LONGEST):
        size, last = len(line), line
        while len(last) == _LONGEST and not last.endswith(b"\n"):
            last = stream.readline(_LONGEST)
            size += len(last)
        if complete or (last or line).endswith(b"\n"):
            yield (line if size == len(line) else None), size


def _too_long(size: int) -> str:
    return f"a line of {size} bytes, and at most {_LONGEST} are read"


def _skip(stream: BinaryIO, count: int) -> None:
    """Go on after that many bytes; a compressed file is read up to there again."""
    if stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (data := stream.read(min(count, 2**20))):
        count -= len(data)


def _whole(file: WatchedFile) -> bytes:
    with file.open() as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise TerminalError(
            f"{file.path} has more than {_LARGEST >> 20} MB, and is read as a whole; split it, or give "
            "format: lines or json_lines"
        )
    return bytes(data)
