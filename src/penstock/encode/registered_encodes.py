"""The formats with a registry as encodes of columns: first the plan, then the id of the schema."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pyarrow as pa

from penstock.encode.avro_derivation import derived_avro
from penstock.encode.avro_encode import avro_encode
from penstock.encode.column_bytes import Encode, joined
from penstock.encode.format_options import AvroFormat, JsonSchemaFormat, ProtobufFormat
from penstock.encode.json_columns_text import json_encode
from penstock.encode.json_schema_derivation import derived_json_schema
from penstock.encode.json_schema_rows import checked_rows, refuse_columns
from penstock.encode.protobuf_derivation import derived_protobuf
from penstock.encode.protobuf_encode import message_encode
from penstock.encode.schema_registration import Registration, Target, head_of
from penstock.errors import ConfigError
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.protobuf import write_place
from penstock.formats.protobuf.protobuf_schema import (
    SERIALIZED,
    Classes,
    described,
    name_at,
    place_of,
)
from penstock.formats.registry import Schema
from penstock.formats.registry.registry_model import AVRO, JSON, PROTOBUF


def registered_avro(options: AvroFormat, type_: pa.DataType, target: Target) -> Encode:
    """Return the encode of a column as Avro, with its schema registered."""
    use = Registration(options, target)
    if options.use_latest:
        latest = use.latest(AVRO)
        encode = avro_encode(Parsed(latest.schema, use.registry), type_, target.path)
        return _headed(head_of(latest.id), encode)
    schema = Schema(options.text() or derived_avro(type_, use.derived_name), AVRO)
    parsed = Parsed(schema, use.registry)
    encode = avro_encode(parsed, type_, target.path)
    record = "" if options.subject == "topic" else parsed.full_name()
    return _headed(head_of(use.schema_id(record, schema)), encode)


def registered_protobuf(options: ProtobufFormat, type_: pa.DataType, target: Target) -> Encode:
    """Return the encode of a column as Protobuf, with its schema registered."""
    use = Registration(options, target)
    if options.use_latest:
        latest = use.latest(PROTOBUF, SERIALIZED)
        return _protobuf(use, latest.id, latest.schema, type_, options.message)
    if text := options.text():
        return _from_text(use, text, type_, options)
    name = use.derived_name
    before = use.known(name, SERIALIZED)
    file = derived_protobuf(type_, name, before and described(before.schema))
    schema = Schema(b64encode(file.SerializeToString(deterministic=True)).decode(), PROTOBUF)
    Classes(use.registry, schema)
    _message(use, schema, type_, None)
    return _protobuf(use, use.schema_id(name, schema), schema, type_, None)


def _from_text(use: Registration, text: str, type_: pa.DataType, options: ProtobufFormat) -> Encode:
    """Let the registry parse the text: it returns the description that the columns are compared with."""
    if options.subject != "topic" and not options.name:
        raise ConfigError(
            f"subject {options.subject!r} with a .proto text needs the message's full name: give 'name'"
        )
    schema_id = use.schema_id(options.name or "", Schema(text, PROTOBUF))
    schema = use.registry.find(schema_id, SERIALIZED)
    if schema is None:
        raise ConfigError(f"the registry at {use.registry.url} does not return schema {schema_id}")
    return _protobuf(use, schema_id, schema, type_, options.message)


def _protobuf(
    use: Registration, schema_id: int, schema: Schema, type_: pa.DataType, message: str | None
) -> Encode:
    place, encode = _message(use, schema, type_, message)
    return _headed(head_of(schema_id) + write_place(place), encode)


def _message(
    use: Registration, schema: Schema, type_: pa.DataType, message: str | None
) -> tuple[list[int], Encode]:
    classes = Classes(use.registry, schema)
    place = place_of(classes.file, message or name_at(classes.file, [0]))
    return place, message_encode(classes.at(place).DESCRIPTOR, type_, use.target.path)


def registered_json(options: JsonSchemaFormat, type_: pa.DataType, target: Target) -> Encode:
    """Return the encode of a column as JSON that a registered JSON Schema describes."""
    use = Registration(options, target)
    if options.use_latest:
        latest = use.latest(JSON)
        return _headed(head_of(latest.id), _checked(use, latest.schema, type_))
    text = options.text()
    if text is None:
        schema = Schema(derived_json_schema(type_, use.derived_name), JSON)
        # Its types are those of the columns: every row fits.
        encode = json_encode(type_, orjson.loads(schema.text), target.path)
    else:
        schema = Schema(text, JSON)
        encode = _checked(use, schema, type_)
    return _headed(head_of(use.schema_id(_title(options, schema), schema)), encode)


def _checked(use: Registration, schema: Schema, type_: pa.DataType) -> Encode:
    check = checked_rows(use.registry, schema)
    document = orjson.loads(schema.text)
    refuse_columns(document, type_, use.target.path)
    return check(json_encode(type_, document, use.target.path))


def _title(options: JsonSchemaFormat, schema: Schema) -> str:
    if options.subject == "topic":
        return ""
    document: Any = orjson.loads(schema.text)
    title = document.get("title") if isinstance(document, dict) else None
    if not title:
        raise ConfigError(f'subject {options.subject!r} needs a JSON Schema with a "title"')
    return str(title)


def _headed(head: bytes, encode: Encode) -> Encode:
    return lambda column: joined(head, encode(column))
