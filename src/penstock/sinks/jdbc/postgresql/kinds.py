"""The types of PostgreSQL."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.sinks.jdbc.database import Layout
from penstock.sinks.jdbc.kinds import Kinds, sized

KINDS = Kinds(
    names={
        BooleanType: "boolean",
        ByteType: "smallint",
        ShortType: "smallint",
        IntegerType: "integer",
        LongType: "bigint",
        FloatType: "real",
        DoubleType: "double precision",
        StringType: "text",
        BinaryType: "bytea",
        DateType: "date",
        TimestampType: "timestamp with time zone",
        TimestampNTZType: "timestamp without time zone",
    },
    decimal="numeric",
    back={
        "boolean": BooleanType(),
        "smallint": ShortType(),
        "integer": IntegerType(),
        "bigint": LongType(),
        "real": FloatType(),
        "double precision": DoubleType(),
        "text": StringType(),
        "character varying": StringType(),
        "character": StringType(),
        "bytea": BinaryType(),
        "date": DateType(),
        "timestamp with time zone": TimestampType(),
        "timestamp without time zone": TimestampNTZType(),
    },
    json=("jsonb", "json"),
    texts=("uuid", "citext", "xml", "inet", "cidr", "macaddr", "interval", "enum"),
)
_TEXTS = ("text", "character varying", "character")


def native(layout: Layout) -> bool:
    """Say whether every column has the very type that we would give it: then bytes can be sent."""
    for field, kind in zip(layout.fields, layout.kinds, strict=True):
        ours, theirs = sized(KINDS.name(field.dataType))[0], sized(kind)[0]
        if ours != theirs and not (ours == "text" and theirs in _TEXTS):
            return False
    return True
