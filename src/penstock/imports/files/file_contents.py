"""What a file's content means: lines, CSV, JSON, Parquet or one record, from where it was left.

Each form yields pieces: values, bad records, and where the piece ends (in bytes, elements or rows).
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from typing import BinaryIO, NamedTuple, Protocol

import msgspec
import pyarrow.parquet as pq

from penstock.imports.files.parquet_rows import ParquetRows
from penstock.pipeline.importing import BadRecord

_AT_ONCE = 5_000
_LARGEST = 256 * 2**20
_LONGEST = 16 * 2**20
# What is split and checked together stays in the processor's cache.
_BLOCK = 2**18
_JSON = msgspec.json.Decoder(msgspec.Raw)
# A value may be as long as its line. The limit of the module `csv` is one for the whole process.
csv.field_size_limit(max(_LONGEST, csv.field_size_limit()))


Line = tuple["bytes | None", int]


class Content(Protocol):
    """What is read: a file or an object that is open."""

    path: str
    # Whether a last line without an end is one.
    complete: bool

    def stream(self) -> BinaryIO:
        """Return it from the start, decompressed."""
        ...

    def is_as_listed(self) -> bool:
        """Return whether it was not written since it was listed."""
        ...


class Piece(NamedTuple):
    """Some records of a file, and where they end."""

    values: list[bytes]
    bad: list[BadRecord]
    end: int


Form = Callable[[Content, int], Iterator[Piece]]
"""Yields the pieces of a file from a place on."""


def lines(file: Content, at: int) -> Iterator[Piece]:
    """Yield lines as they are, without their ends."""
    for found, bad, end in _lines(file, at):
        is_plain = b"\r" not in b"".join(found)
        yield Piece(found if is_plain else [line.removesuffix(b"\r") for line in found], bad, end)


def json_lines(file: Content, at: int) -> Iterator[Piece]:
    """Yield lines that are JSON documents; empty ones are left out."""
    is_first = at == 0
    for found, bad, end in _lines(file, at):
        if is_first and found:
            found[0] = found[0].removeprefix(BOM_UTF8)
            is_first = False
        if _are_documents(found):
            yield Piece(found, bad, end)
            continue
        values = []
        for line in (line.strip() for line in found):
            try:
                if line:
                    line.decode()
                    _JSON.decode(line)
                    values.append(line)
            except (ValueError, RecursionError) as error:
                bad.append(BadRecord(line, f"{file.path}: {error}", type(error).__name__))
        yield Piece(values, bad, end)


def _are_documents(found: list[bytes]) -> bool:
    """Return whether each line is one document and nothing else: one check of all is faster."""
    text = b"\n".join(found)
    try:
        text.decode()
        documents = _JSON.decode_lines(text)
    except (ValueError, RecursionError):
        return False
    # Not one that goes over two lines, two in one line, or space around one.
    return len(documents) == len(found) and b"\n".join(documents) == text


def csv_rows(file: Content, at: int) -> Iterator[Piece]:
    """Yield rows as JSON objects, named by the first row; empty lines are left out."""
    with file.stream() as stream:
        first = Rows(file, stream)
        header = next(first, None)
    if header is None:
        return
    if isinstance(header, BadRecord) or len(set(header)) < len(header):
        text = f"{file.path}: the header is not a row of different names"
        yield Piece([], [BadRecord(None, text)], first.end)
        header = None
    elif at == 0:
        yield Piece([], [], first.end)
    at = at or first.end
    with file.stream() as stream:
        _skip(stream, at)
        rows = Rows(file, stream, at)
        while found := [(row, rows.lines) for row in islice(rows, _AT_ONCE)]:
            values, bad = [], []
            for row, row_lines in found:
                if isinstance(row, BadRecord):
                    bad.append(row)
                elif header is None or len(row) != len(header):
                    wanted = len(header or ())
                    text = f"{file.path}: a row of {len(row)} values, and the header has {wanted}"
                    given = b"".join(line or b"" for line, _ in row_lines).rstrip(b"\r\n")
                    bad += [BadRecord(given, text)] if row else []
                else:
                    values.append(msgspec.json.encode(dict(zip(header, row, strict=True))))
            yield Piece(values, bad, rows.end)


def json_array(file: Content, at: int) -> Iterator[Piece]:
    """Yield the elements of one array; the file is read as a whole."""
    data = _whole(file).removeprefix(BOM_UTF8)
    try:
        data.decode()
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (ValueError, RecursionError) as error:
        raise ContentError(f"not a JSON array: {error}") from None
    for start in range(at, len(elements), _AT_ONCE):
        some = elements[start : start + _AT_ONCE]
        yield Piece([bytes(each) for each in some], [], start + len(some))


def parquet_rows(file: Content, at: int) -> Iterator[Piece]:
    """Yield the rows of a Parquet file as JSON objects."""
    with file.stream() as stream, pq.ParquetFile(stream) as table:
        end, rows = 0, ParquetRows(table.schema_arrow)
        for batch in table.iter_batches(_AT_ONCE):
            start, end = end, end + batch.num_rows
            if end > at:
                yield Piece(*rows.records(batch.slice(max(0, at - start)), file.path), end)


def whole_file(file: Content, at: int) -> Iterator[Piece]:
    """Yield the file as one record."""
    if at == 0:
        yield Piece([_whole(file)], [], 1)


FORMS: dict[str, Form] = {
    "lines": lines,
    "csv": csv_rows,
    "json_lines": json_lines,
    "json_array": json_array,
    "parquet": parquet_rows,
    "whole": whole_file,
}
GROWING = frozenset({"lines", "csv", "json_lines"})


class ContentError(ValueError):
    """A file whose content is not of its format."""


class TooLargeError(ContentError):
    """A file that is read as a whole, and is too large for that."""


class Rows(Iterator["list[str] | BadRecord"]):
    """The rows of a CSV file, and where each of them ends; one that is cut off waits for its rest.

    Where a row is not one, because a quote is never closed, say, its first line is bad, and the next line
    is read as a row again: no line is left out.
    """

    def __init__(self, file: Content, stream: BinaryIO, at: int = 0) -> None:
        self.end = at
        self._path = file.path
        self._lines = CompleteLines(file, stream, file.complete)
        self._again: deque[Line] = deque()
        self._row: list[Line] = []
        # Those of the row that was read last, as they are in the file.
        self.lines: list[Line] = []
        self._exhausted = False
        self._reader = csv.reader(self._feed(), strict=True)

    def _feed(self) -> Iterator[str]:
        while True:
            line = self._again.popleft() if self._again else next(self._lines, None)
            if line is None:
                self._exhausted = True
                return
            self._row.append(line)
            text, size = line
            if text is None:
                raise csv.Error(_too_long(size))
            yield text.decode("utf-8-sig" if self.end == 0 and len(self._row) == 1 else "utf-8")

    def __next__(self) -> list[str] | BadRecord:
        try:
            row: list[str] | BadRecord = next(self._reader)
            self.end += sum(size for _, size in self._row)
            self.lines, self._row = self._row, []
        except (csv.Error, UnicodeDecodeError) as error:
            if self._exhausted and self._lines.is_cut_off:
                raise StopIteration from None
            (line, size), *rest = self._row
            self._again.extendleft(reversed(rest))
            self._row, self._exhausted = [], False
            self._reader = csv.reader(self._feed(), strict=True)
            self.end += size
            row = BadRecord(line, f"{self._path}: not a CSV row: {error}", type(error).__name__)
        return row


class CompleteLines(Iterator["Line"]):
    """Lines with their ends, and their sizes; None for one that is too long to be a record.

    The last one, without an end, is there only where the file has been quiet and still is.
    """

    def __init__(self, file: Content, stream: BinaryIO, complete: bool) -> None:
        self._file = file
        self._stream = stream
        self._complete = complete
        # Whether there may be more of the file than was given.
        self.is_cut_off = not complete

    def __next__(self) -> Line:
        if not (line := self._stream.readline(_LONGEST)):
            raise StopIteration
        size, last = len(line), line
        while len(last) == _LONGEST and not last.endswith(b"\n"):
            last = self._stream.readline(_LONGEST)
            size += len(last)
        if not (last or line).endswith(b"\n") and not self._is_the_last():
            # What comes after it by now belongs to it.
            self._stream = BytesIO()
            self.is_cut_off = True
            raise StopIteration
        return (line if size == len(line) else None), size

    def _is_the_last(self) -> bool:
        return self._complete and self._file.is_as_listed()


def _lines(file: Content, at: int) -> Iterator[tuple[list[bytes], list[BadRecord], int]]:
    """Yield some lines without their ends, and where they end: a block of bytes is split as a whole."""
    with file.stream() as stream:
        _skip(stream, at)
        # The beginning of a line, and how much of it was dropped because it is too long.
        rest, dropped = b"", 0
        while data := stream.read(_BLOCK):
            *found, last = data.split(b"\n")
            if found:
                size = dropped + len(rest) + len(data) - len(last)
                found[0] = rest + found[0]
                yield from _pieces(file.path, found, dropped, at, size)
                at += size
                rest, dropped = b"", 0
            rest += last
            if len(rest) >= _LONGEST:
                rest, dropped = b"", dropped + len(rest)
        if (rest or dropped) and file.complete and file.is_as_listed():
            yield from _pieces(file.path, [rest], dropped, at, dropped + len(rest), ending=0)


def _pieces(
    path: str, found: list[bytes], dropped: int, at: int, size: int, *, ending: int = 1
) -> Iterator[tuple[list[bytes], list[BadRecord], int]]:
    """Yield lines of `size` bytes in pieces; of the first, `dropped` bytes are missing.

    It alone can be too long to be a record: all others are within one block.
    """
    first = dropped + len(found[0]) + ending
    end = at + size
    if first > _LONGEST:
        at += first
        yield [], [BadRecord(None, f"{path}: {_too_long(first)}", "TooLargeError")], at
        found = found[1:]
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE] if len(found) > _AT_ONCE else found
        is_last = start + _AT_ONCE >= len(found)
        at = end if is_last else at + sum(map(len, some)) + len(some)
        yield some, [], at


def _too_long(size: int) -> str:
    return f"a line of {size} bytes, and at most {_LONGEST} are read"


def _skip(stream: BinaryIO, count: int) -> None:
    """Go on after that many bytes; a compressed file is read up to there again."""
    if stream.seekable():
        stream.seek(count)
        return
    while count > 0 and (data := stream.read(min(count, 2**20))):
        count -= len(data)


def _whole(file: Content) -> bytes:
    with file.stream() as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise TooLargeError(
            f"the file has more than {_LARGEST >> 20} MB, and is read as a whole; split it, or give "
            "format: lines or json_lines"
        )
    return bytes(data)
