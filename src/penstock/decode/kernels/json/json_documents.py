"""JSON columns that are not the field of their name: from a path, of an array's elements, or the rest.

Each record is rewritten as the documents of its rows, which the JSON kernel then decodes: types, limits
and messages are the kernel's own. Values stay JSON text on the way, so no digit is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_paths import Steps, value_at
from penstock.decode.kernels.json.strict import read_document, shown_json
from penstock.decode.kernels.outcome import Decoded, Failure, MisfitError, Volume
from penstock.errors import FormatError
from penstock.formats.limits import check_size
from penstock.pipeline.columns import Field, Scalar
from penstock.pipeline.schema import Schema

_Members = dict[str, msgspec.Raw]
# The documents that are decoded in one call of the kernel, in bytes: their rows are alive together.
_MOST_BYTES = 16 * 2**20
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NULL = msgspec.Raw(b"null")


@dataclass(frozen=True)
class Layout:
    """Where values come from that are not the field of their column's name.

    `rest` is the column of the fields that are not declared, `paths` has columns that come from a path,
    `explode` the field whose elements become rows; with `keep_empty` a record without elements is a row.
    """

    rest: str | None = None
    paths: Mapping[str, Steps] = field(default_factory=dict)
    explode: str | None = None
    keep_empty: bool = False

    def schema(self, declared: Schema) -> Schema:
        """Return the columns of the rows: the declared ones, and the rest."""
        if self.rest is None:
            return declared
        return Schema((*declared.fields, Field(self.rest, Scalar("string"))))


@dataclass(frozen=True)
class _Document:
    """The text of one row, with the index of its record and, of an exploded one, of its element."""

    text: bytes
    record: int
    element: int | None = None


class DocumentKernel:
    """Decodes JSON objects into the columns of a schema and a layout.

    >>> kernel = DocumentKernel(Schema.parse("id int, px int"), Layout(explode="legs", rest="more"))
    >>> value = b'{"id": 1, "a": 1.0, "legs": [{"px": 5}, {"px": 6}]}'
    >>> kernel(pa.record_batch({"value": [value]})).rows.to_pylist()
    [{'id': 1, 'px': 5, 'more': '{"a":1.0}'}, {'id': 1, 'px': 6, 'more': '{"a":1.0}'}]
    """

    def __init__(self, schema: Schema, layout: Layout) -> None:
        self._layout = layout
        self._kernel = JsonKernel(layout.schema(schema))
        self._named = [name for name in schema.names if name not in layout.paths]
        self._known = frozenset([*self._named, layout.explode])

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch; a record of which one row fails has no rows."""
        failures: dict[int, Failure] = {}
        parts, origins = [], []
        for documents in self._groups(batch.column("value"), failures):
            rows, bad = self._kernel.decode(
                pa.array([one.text for one in documents], pa.large_binary())
            )
            for failure in bad:
                found = self._of_record(failure, documents[failure.index])
                failures.setdefault(found.index, found)
            unfit = {failure.index for failure in bad}
            parts.append(rows)
            origins += [one.record for at, one in enumerate(documents) if at not in unfit]
        rows = pa.concat_batches(parts)
        kept = pa.array([origin not in failures for origin in origins], pa.bool_())
        ordered = [failures[index] for index in sorted(failures)]
        return Decoded(rows.filter(kept), ordered, pa.array(origins, pa.int64()).filter(kept))

    def _of_record(self, failure: Failure, document: _Document) -> Failure:
        at = "" if document.element is None else f"{self._layout.explode}[{document.element}]: "
        return Failure(document.record, failure.error_type, f"{at}{failure.message}")

    def _groups(self, values: pa.Array, failures: dict[int, Failure]) -> Iterator[list[_Document]]:
        """Give the documents of all records, many at a time; always once, so that there are columns."""
        group: list[_Document] = []
        size = 0
        volume = Volume()
        for index, value in enumerate(values):
            try:
                documents = self._documents(value.as_py(), index)
            except MisfitError as error:
                failures[index] = Failure(index, error.error_type, str(error))
                continue
            group += documents
            made = sum(len(one.text) for one in documents)
            volume.add(made)
            size += made
            if size > _MOST_BYTES:
                yield group
                group, size = [], 0
        yield group

    def _documents(self, value: bytes | None, record: int) -> list[_Document]:
        try:
            members = _object(read_document(value))
            if self._layout.explode is None:
                return [_Document(self._text(members), record)]
            return self._exploded(members, self._layout.explode, record)
        except msgspec.MsgspecError as error:
            raise MisfitError("MalformedJson", f"not JSON: {error}") from None

    def _exploded(self, members: _Members, name: str, record: int) -> list[_Document]:
        documents, size = [], 0
        for place, element in enumerate(self._elements(members.get(name, _NULL), name)):
            fields = _object(element) if bytes(element)[:1] == b"{" else {}
            text = self._text({**members, **fields, name: element})
            size += len(text)
            _refuse_large(size)
            documents.append(_Document(text, record, place))
        return documents

    def _elements(self, value: msgspec.Raw, name: str) -> list[msgspec.Raw]:
        text = bytes(value)
        if text != b"null" and text[:1] != b"[":
            raise MisfitError(
                "WrongType", f"{name}: found {shown_json(text)}, explode expects an array"
            )
        elements = [] if text == b"null" else _array(value)
        return elements or ([_NULL] if self._layout.keep_empty else [])

    def _text(self, members: _Members) -> bytes:
        """Return the document of one row: what its columns need, and nothing else."""
        row: dict[str, object] = {name: members[name] for name in self._named if name in members}
        for name, steps in self._layout.paths.items():
            if (value := value_at(members, steps)) is not None:
                row[name] = value
        if self._layout.rest is not None:
            rest = {name: value for name, value in members.items() if name not in self._known}
            row[self._layout.rest] = msgspec.json.encode(rest).decode() if rest else None
        return msgspec.json.encode(row)


def _refuse_large(size: int) -> None:
    """Raise before the rows of one record take more memory than one value may."""
    try:
        check_size(size, "the exploded record")
    except FormatError as error:
        raise MisfitError("TooLarge", str(error)) from None
