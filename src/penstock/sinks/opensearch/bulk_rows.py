"""Rows as the body of a bulk request, column by column: nothing here runs for each row.

What would break a whole request (an id that is too long, a document that is not one) is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sinks.messages import Refusal
from penstock.sinks.opensearch.index_names import name_problem

LONGEST_ID = 512
_OVERHEAD = 96
_ESCAPED = r'["\\\x00-\x1f]'
_BINARY = pa.binary()
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True)
class BulkForm:
    """How rows are written: the same for all of them."""

    operation: str
    # The beginning of the index's name, for the rules; all of it where `fixed_index`.
    index_prefix: str
    fixed_index: bool
    # Whether documents are values of a column, which may be anything.
    checks_documents: bool


class BulkRows:
    """Rows that can be sent, in the order in which they came; `numbers` are their places in the batch."""

    def __init__(self, form: BulkForm, columns: dict[str, pa.Array], numbers: np.ndarray) -> None:
        self._form = form
        self._columns = columns
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: np.ndarray) -> BulkRows:
        """Return some of the rows."""
        at = pa.array(rows, pa.int64())
        columns = {name: column.take(at) for name, column in self._columns.items()}
        return BulkRows(self._form, columns, self.numbers[rows])

    def part(self, start: int, end: int) -> BulkRows:
        """Return neighbouring rows."""
        columns = {name: c.slice(start, end - start) for name, c in self._columns.items()}
        return BulkRows(self._form, columns, self.numbers[start:end])

    def parts(self, most: int) -> Iterator[BulkRows]:
        """Return the rows in parts of about this many bytes, each with one row at least."""
        ends = np.cumsum(self._sizes())
        start, sent = 0, 0
        while start < len(self):
            end = max(start + 1, int(np.searchsorted(ends, sent + most, "right")))
            yield self.part(start, end)
            start, sent = end, int(ends[end - 1])

    def names(self) -> list[str]:
        """Return the names of the indexes of the rows, each once."""
        return [] if "index" not in self._columns else self._columns["index"].unique().to_pylist()

    def targets(self) -> list[tuple[Any, ...]]:
        """Return index and id of each row."""
        named = [
            self._columns[name].to_pylist() for name in ("index", "id") if name in self._columns
        ]
        return list(zip(*named, strict=True))

    def body(self) -> memoryview:
        """Return the body: for each row the line of the action, and the line of the document."""
        columns = self._columns
        pieces: list[Any] = [self._begin(), _quoted(columns["id"])]
        if "index" in columns:
            pieces += [b',"_index":', _quoted(columns["index"])]
        if "version" in columns:
            version = columns["version"].cast(pa.string()).cast(_BINARY)
            pieces += [b',"version":', version, b',"version_type":"external"']
        pieces += self._documents()
        made = pc.binary_join_element_wise(*map(_piece, pieces), _piece(b""))
        ends = np.frombuffer(made.buffers()[1], np.int32, len(made) + 1, made.offset * 4)
        return memoryview(made.buffers()[2])[ends[0] : ends[-1]]

    def _begin(self) -> Any:
        word = "update" if self._form.operation == "upsert" else self._form.operation
        begin = b'{"%s":{"_id":' % word.encode()
        if "deleted" not in self._columns:
            return begin
        return pc.if_else(self._columns["deleted"], _piece(b'{"delete":{"_id":'), _piece(begin))

    def _documents(self) -> list[Any]:
        if self._form.operation == "delete":
            return [b"}}\n"]
        before, after = b"}}\n", b"\n"
        if self._form.operation == "upsert":
            before = b',"retry_on_conflict":3}}\n{"doc":'
            after = b',"doc_as_upsert":true}\n'
        document = self._columns["document"]
        if "deleted" not in self._columns:
            return [before, document, after]
        written = pc.binary_join_element_wise(*map(_piece, (before, document, after, b"")))
        return [pc.if_else(self._columns["deleted"], _piece(b"}}\n"), written)]

    def _sizes(self) -> np.ndarray:
        size = np.full(len(self), _OVERHEAD, np.int64)
        for name in ("document", "id", "index"):
            if name in self._columns:
                length = pc.fill_null(pc.binary_length(self._columns[name]), 0)
                size += length.to_numpy(zero_copy_only=False)
        return size


def bulk_rows(
    form: BulkForm, rows: pa.RecordBatch, ids: pa.Array | None
) -> tuple[BulkRows, list[Refusal]]:
    """Return the rows that can be sent, and the refusals of the others; `ids` replace the column."""
    columns = {
        name: rows.column(name)
        for name in ("document", "id", "index", "version", "deleted")
        if name in rows.schema.names
    }
    if ids is not None:
        columns["id"] = ids
    if "deleted" in columns:
        columns["deleted"] = pc.fill_null(columns["deleted"], False)
    refused = {each.row: each for each in _refusals(form, columns)}
    if form.checks_documents:
        columns["document"] = _in_one_line(columns["document"])
    made = BulkRows(form, columns, np.arange(rows.num_rows))
    if not refused:
        return made, []
    kept = np.array([row for row in range(rows.num_rows) if row not in refused], np.int64)
    return made.take(kept), [refused[row] for row in sorted(refused)]


def _refusals(form: BulkForm, columns: dict[str, pa.Array]) -> Iterator[Refusal]:
    yield from _of_documents(form, columns)
    yield from _of_ids(columns["id"])
    if "index" in columns:
        yield from _of_indexes(columns["index"], form.index_prefix)
    if "version" in columns:
        version = columns["version"]
        wrong = pc.fill_null(pc.less(version, 0), True)
        yield from _all(
            wrong, "version", "the version is null or less than 0: give one in each row"
        )


def _of_documents(form: BulkForm, columns: dict[str, pa.Array]) -> Iterator[Refusal]:
    if "document" not in columns:
        return
    document = columns["document"]
    missing = pc.is_null(document)
    if "deleted" in columns:
        missing = pc.and_(missing, pc.invert(columns["deleted"]))
    why = "the value is null, and 'delete_null' is false: there is no document to write"
    yield from _all(missing, "no_document", why)
    if form.checks_documents:
        for row, text in enumerate(document.to_pylist()):
            if text is not None and (problem := _document_problem(text)):
                yield Refusal(row, "not_a_document", problem)


def _document_problem(text: bytes) -> str | None:
    try:
        _OBJECT.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return f"the value is not a JSON object: {str(error)[:300]}"
    return None


def _of_ids(ids: pa.Array) -> Iterator[Refusal]:
    yield from _all(pc.is_null(ids), "no_id", "the id is null: every column of 'id' needs a value")
    length = pc.fill_null(pc.binary_length(ids), 1)
    yield from _all(pc.equal(length, 0), "no_id", "the id is empty")
    why = f"the id has more than {LONGEST_ID} bytes, which the server refuses"
    yield from _all(pc.greater(length, LONGEST_ID), "long_id", why)


def _of_indexes(names: pa.Array, prefix: str) -> Iterator[Refusal]:
    wrong = {
        name: why for name in names.unique().to_pylist() if (why := name_problem(name, prefix))
    }
    if wrong:
        for row, name in enumerate(names.to_pylist()):
            if name in wrong:
                yield Refusal(row, "invalid_index_name", wrong[name])


def _all(wrong: pa.Array, kind: str, why: str) -> Iterable[Refusal]:
    if not pc.any(wrong).as_py():
        return []
    return [Refusal(int(row), kind, why) for row in np.flatnonzero(wrong.to_numpy(False))]


def _in_one_line(documents: pa.Array) -> pa.Array:
    """Return documents without line ends, which JSON has between its parts only: a line is a row here."""
    if not pc.any(pc.match_substring(documents, b"\n")).as_py():
        return documents
    texts = [text and text.replace(b"\n", b" ") for text in documents.to_pylist()]
    return pa.array(texts, documents.type)


def _quoted(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings."""
    if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
        return pa.array([msgspec.json.encode(text) for text in texts.to_pylist()], _BINARY)
    return pc.binary_join_element_wise(*map(_piece, (b'"', texts, b'"', b"")))


def _piece(piece: Any) -> Any:
    if isinstance(piece, bytes):
        return pa.scalar(piece, _BINARY)
    return piece if piece.type == _BINARY else piece.cast(_BINARY)
