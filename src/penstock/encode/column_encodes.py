"""The encode of a column for any format: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.encode.column_bytes import Encode, where_valid
from penstock.encode.csv_encode import csv_encode
from penstock.encode.format_options import ConverterFormat, CsvFormat, FormatChoice
from penstock.encode.message_encodes import arrow_encode, dolphindb_encode
from penstock.encode.primitive_encodes import PRIMITIVES, primitive_encode
from penstock.encode.schema_registration import Target
from penstock.errors import missing_extra
from penstock.formats.connect.arrow_types import arrow_type, schema_of
from penstock.formats.connect.converter_options import ConverterOptions


def column_encode(chosen: FormatChoice, type_: pa.DataType, target: Target) -> Encode:
    """Return the encode of a column, in which a null stays null; rows are a column of structs.

    A schema is registered here, and whatever is wrong with it or with the columns is raised here.

    >>> chosen = FormatChoice.model_validate("int")
    >>> encode = column_encode(chosen, pa.int64(), Target("orders", "key", "id"))
    >>> encode(pa.array([1, None])).to_pylist()
    [b'\\x00\\x00\\x00\\x01', None]
    """
    encode = _encode(chosen, type_, target)
    return lambda column: where_valid(encode, column)


def _encode(chosen: FormatChoice, type_: pa.DataType, target: Target) -> Encode:
    if isinstance(chosen, ConverterFormat):
        return _converted(chosen.connect, type_, target)
    if chosen.registered:
        return _registered(chosen, type_, target)
    if chosen.name in PRIMITIVES:
        return primitive_encode(chosen.name, type_, target.path)
    if chosen.name == "csv":
        options = chosen.csv or CsvFormat()
        return csv_encode(type_, target.path, **options.model_dump())
    makers: dict[str, Callable[[], Encode]] = {
        "arrow": lambda: arrow_encode(type_),
        "dolphindb": lambda: dolphindb_encode(type_, target.path),
    }
    return makers[chosen.name]()


def _converted(options: ConverterOptions, type_: pa.DataType, target: Target) -> Encode:
    from penstock.encode.connect_encodes import converter_encode  # noqa: PLC0415 - it uses this module

    schema = schema_of(type_)
    encode, wanted = converter_encode(options, schema, target), arrow_type(schema)
    return lambda column: encode(column if column.type == wanted else column.cast(wanted))


def _registered(chosen: FormatChoice, type_: pa.DataType, target: Target) -> Encode:
    try:
        from penstock.encode import registered_encodes  # noqa: PLC0415 - they need an extra
    except ModuleNotFoundError as error:
        raise missing_extra(error, f"the format {chosen.name!r}") from error
    if chosen.avro:
        return registered_encodes.registered_avro(chosen.avro, type_, target)
    if chosen.protobuf:
        return registered_encodes.registered_protobuf(chosen.protobuf, type_, target)
    assert chosen.json_schema  # noqa: S101 - one of the three
    return registered_encodes.registered_json(chosen.json_schema, type_, target)


def takes_one_column(chosen: FormatChoice) -> bool:
    """Return whether a format writes one value, never a row."""
    form = chosen.connect.form if isinstance(chosen, ConverterFormat) else chosen.name
    return form in PRIMITIVES
