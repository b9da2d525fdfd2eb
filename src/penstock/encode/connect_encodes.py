"""The encode of a key or value for any converter of Connect."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import Encode, where_valid
from penstock.encode.column_encodes import column_encode
from penstock.encode.connect_json import connect_json_encode
from penstock.encode.connect_text import connect_text_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.primitive_encodes import primitive_encode
from penstock.encode.schema_registration import Target
from penstock.errors import ConfigError
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.converter_options import PRIMITIVES, REGISTERED, ConverterOptions
from penstock.formats.connect.schema import Schema, Type

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_MARK = b"\xfe\xff"
_PRIMITIVES = {
    "short": Type.INT16,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "bytes": Type.BYTES,
}


def converter_encode(options: ConverterOptions, schema: Schema | None, target: Target) -> Encode:
    """Return the encode of a column of a schema, in which a null stays null; None: text of JSON.

    A schema is registered here, and whatever is wrong with the converter or the schema is raised here.

    >>> from penstock.formats.connect import INT32
    >>> encode = converter_encode(ConverterOptions(form="int"), INT32, Target("orders", "key"))
    >>> encode(pa.array([1, None], pa.int32())).to_pylist()
    [b'\\x00\\x00\\x00\\x01', None]
    """
    encode = _encode(options, schema, target)
    return lambda column: where_valid(encode, column)


def _encode(options: ConverterOptions, schema: Schema | None, target: Target) -> Encode:
    path = target.path or target.part
    if options.form == "json":
        return connect_json_encode(schema, options, path)
    if options.form == "string":
        return _in_character_set(connect_text_encode(schema, path), options.encoding)
    if options.form in REGISTERED:
        return _registered(options, schema, target)
    _check_type(options.form, schema, path)
    if options.form == "boolean":
        return lambda column: pc.if_else(column, pa.scalar(b"\1"), pa.scalar(b"\0"))
    assert schema is not None  # noqa: S101 - checked
    return primitive_encode(options.form, arrow_type(schema), path)


def _check_type(form: str, schema: Schema | None, path: str) -> None:
    expected = _PRIMITIVES[form]
    if (
        schema is None
        or schema.type is not expected
        or (schema.name is not None and form == "bytes")
    ):
        given = "JSON without a schema" if schema is None else schema.name or schema.type.value
        raise ConfigError(
            f"the converter of {form!r} writes {expected.value} alone, and {path!r} is {given}: choose "
            f"{'another primitive converter or ' if form in PRIMITIVES else ''}JsonConverter"
        )


def _in_character_set(encode: Encode, name: str) -> Encode:
    if name.upper().replace("_", "-") in ("UTF-8", "UTF8"):
        return encode

    # Java writes UTF-16 with the highest byte first, and a mark of that.
    mark, set_name = (_MARK, "UTF-16BE") if name.upper() == "UTF-16" else (b"", name)

    def run(column: pa.Array) -> pa.Array:
        texts = encode(column).cast(pa.string()).to_pylist()
        return pa.array([mark + text.encode(set_name, "replace") for text in texts], pa.binary())

    return run


def _registered(options: ConverterOptions, schema: Schema | None, target: Target) -> Encode:
    if schema is None:
        raise ConfigError(
            f"the converter of {options.form!r} needs a schema for the {target.part}s, and they are JSON "
            "without one"
        )
    assert options.registry is not None  # noqa: S101 - options are refused without
    given = {
        "registry": options.registry,
        "register": options.register_,
        "use_latest": options.use_latest,
        "subject": options.subject,
    }
    if schema.name and _NAME.fullmatch(schema.name) and schema.type is Type.STRUCT:
        given["name"] = schema.name
    chosen = FormatChoice.model_validate({options.form: given})
    return column_encode(chosen, arrow_type(schema), target)
