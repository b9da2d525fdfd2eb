"""A row as one line of CSV: the columns in their order, quoted where RFC 4180 requires it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import Encode, as_bytes, joined, optional
from penstock.encode.derived_schemas import no_form
from penstock.encode.text_forms import Texts, base64_texts, texts_of


def csv_encode(
    type_: pa.DataType, path: str = "", *, delimiter: str = ",", quote: str = '"', null: str = ""
) -> Encode:
    """Return the encode of rows as lines without an end; a text that equals `null` is quoted.

    >>> rows = pa.array([{"a": 1, "b": "x,y"}, {"a": None, "b": ""}])
    >>> [line.decode() for line in csv_encode(rows.type)(rows).to_pylist()]
    ['1,"x,y"', ',""']
    """
    fields = list(type_) if pa.types.is_struct(type_) else [pa.field(path, type_)]
    encodes = [_field(field, delimiter, quote, null) for field in fields]
    separator = delimiter.encode()

    def encode(rows: pa.Array) -> pa.Array:
        columns = rows.flatten() if pa.types.is_struct(rows.type) else [rows]
        items = [run(column) for run, column in zip(encodes, columns, strict=True)]
        parts = [part for item in items for part in (separator, item)]
        return joined(*parts[1:])

    return encode


def _texts(type_: pa.DataType) -> Texts | None:
    if pa.types.is_binary(type_):
        return base64_texts
    return _real_texts if pa.types.is_floating(type_) else texts_of(type_)


def _real_texts(column: pa.Array) -> pa.Array:
    """Return numbers as text, with the names that Java and the decode have for those without digits."""
    texts = pc.replace_substring_regex(column.cast(pa.string()), "inf$", "Infinity")
    return pc.replace_substring_regex(texts, "^nan$", "NaN")


def _field(field: pa.Field, delimiter: str, quote: str, null: str) -> Encode:
    texts = _texts(field.type)
    if texts is None:
        raise no_form("CSV", field.type, field.name)

    def encode(column: pa.Array) -> pa.Array:
        written = texts(column)
        special = pc.equal(written, null)
        for character in (delimiter, quote, "\n", "\r"):
            special = pc.or_(special, pc.match_substring(written, character))
        if not pc.any(special).as_py():
            return as_bytes(written)
        escaped = as_bytes(pc.replace_substring(written, quote, quote * 2))
        mark = quote.encode()
        return pc.if_else(special, joined(mark, escaped, mark), as_bytes(written))

    return optional(encode, null.encode())
