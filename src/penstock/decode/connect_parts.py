"""A key or a value with its converter: the schema, the column's type, and where it is decoded.

Text, bytes and JSON without a schema are expressions of Spark. All others are read in Python workers,
over whole Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.config import Connection
from penstock.decode.connect_types import spark_type
from penstock.decode.kernels.connect.envelopes import EnvelopePlan
from penstock.decode.kernels.connect.record_kernel import (
    Make,
    Payloads,
    Primitives,
    envelope_reader,
)
from penstock.decode.newest_schemas import newest_schema
from penstock.errors import ConfigError, missing_extra
from penstock.formats import connect
from penstock.formats.connect.converter_options import PRIMITIVES, REGISTERED, ConverterOptions
from penstock.formats.connect.json_schemas import from_document
from penstock.formats.connect.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_PRIMITIVES = {
    "short": connect.INT16,
    "int": connect.INT32,
    "long": connect.INT64,
    "float": connect.FLOAT32,
    "double": connect.FLOAT64,
    "boolean": connect.BOOLEAN,
    "string": connect.STRING,
    "bytes": connect.BYTES,
}
# What Spark calls the character sets that its function `decode` knows.
_CHARACTER_SETS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")


@dataclass(frozen=True)
class Part:
    """A key or value of one attempt. `schema` is None for JSON without one, and where no record is known.

    `make` returns the reader of a worker; without it the column is `expression` of the bytes. `bad` is
    true for bytes that are not what they should be.
    """

    schema: Schema | None
    make: Make | None = None
    expression: Callable[[Column], Column] | None = None
    bad: Callable[[Column], Column] | None = None
    # What of the part changes which records fail.
    identity: str = ""
    # Whether records have their schemas with them, and there is none yet.
    is_unknown: bool = False

    @property
    def type(self) -> DataType:
        """Return the type of its column."""
        return spark_type(self.schema)


@dataclass(frozen=True)
class Sampling:
    """Where records are looked at for their schema: topics by name, or a pattern for their names."""

    connection: Connection | None
    topics: Sequence[str] | str
    evolves: bool = True


def bound_part(options: ConverterOptions, part: str, sampling: Sampling) -> Part:
    """Return a key or value as one attempt has it."""
    if options.form in REGISTERED:
        return _registered(options, part, sampling)
    if options.form in PRIMITIVES:
        return Part(_optional(options.form), Primitives(options.form))
    if options.form == "bytes":
        return Part(_optional("bytes"), expression=lambda column: column)
    if options.form == "string":
        return Part(_optional("string"), expression=partial(_text, encoding=options.encoding))
    if options.is_schemaless:
        return Part(None, expression=_json_text, bad=_is_not_json)
    return _with_schemas(options, part, sampling)


def _optional(form: str) -> Schema:
    return _PRIMITIVES[form].or_null()


def _with_schemas(options: ConverterOptions, part: str, sampling: Sampling) -> Part:
    if options.schema_ is not None:
        schema = from_document(options.schema_)
        return Part(schema, Payloads(schema, options.replace_null))
    if sampling.connection is None:
        raise ConfigError(
            f"the {part}s have their schemas with them, and without 'connection' no record can be looked "
            "at for its schema: give it, or 'schema'"
        )
    found = newest_schema(sampling.connection, sampling.topics, part)
    plan = EnvelopePlan(found.schema, options.replace_null, sampling.evolves, found.ends)
    make = partial(envelope_reader, plan)
    return Part(found.schema, make, identity=f"{found.schema}", is_unknown=found.schema is None)


def _registered(options: ConverterOptions, part: str, sampling: Sampling) -> Part:
    try:
        from penstock.decode.connect_registered import registered_part  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing_extra(error, f"the converter of {options.form!r}") from error
    schema, make, identity = registered_part(options, part, sampling.topics, sampling.evolves)
    return Part(schema, make, identity=identity)


def _text(column: Column, encoding: str) -> Column:
    """Return bytes as text as Java does: what is not of the character set becomes U+FFFD."""
    name = encoding.upper().replace("_", "-")
    if name in ("UTF-8", "UTF8"):
        return f.make_valid_utf8(column.cast("string"))
    if name not in _CHARACTER_SETS:
        raise ConfigError(
            f"the character set {encoding!r:.60} cannot be read here; allowed: "
            f"{', '.join(_CHARACTER_SETS)}"
        )
    return f.decode(column, name)


def _json_text(column: Column) -> Column:
    text = column.cast("string")
    return f.when(~_stripped(text).isin("null", ""), text)


def _is_not_json(column: Column) -> Column:
    text = column.cast("string")
    # Spark's parser ignores what follows a value: only one whole value fits into both of these.
    in_list = f.try_parse_json(f.concat(f.lit("["), text, f.lit("]")))
    in_object = f.try_parse_json(f.concat(f.lit('{"v":'), text, f.lit("}")))
    parsed = f.is_valid_utf8(text) & in_list.isNotNull() & in_object.isNotNull()
    return column.isNotNull() & (_stripped(text) != "") & ~f.coalesce(parsed, f.lit(False))


def _stripped(text: Column) -> Column:
    """Return a text without what JSON allows around a value."""
    return f.btrim(text, f.lit(" \t\r\n"))
