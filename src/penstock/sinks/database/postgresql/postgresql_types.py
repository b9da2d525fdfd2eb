"""The types of PostgreSQL."""

from __future__ import annotations

from pyspark.sql import types as t

from penstock.sinks.database.database_api import Layout
from penstock.sinks.database.type_map import TypeMap, sized

KINDS = TypeMap(
    names={
        t.BooleanType: "boolean",
        t.ByteType: "smallint",
        t.ShortType: "smallint",
        t.IntegerType: "integer",
        t.LongType: "bigint",
        t.FloatType: "real",
        t.DoubleType: "double precision",
        t.StringType: "text",
        t.BinaryType: "bytea",
        t.DateType: "date",
        t.TimestampType: "timestamp with time zone",
        t.TimestampNTZType: "timestamp without time zone",
    },
    decimal="numeric",
    also=dict.fromkeys(("character varying", "character"), t.StringType()),
    json=("jsonb", "json"),
    texts=("uuid", "citext", "xml", "inet", "cidr", "macaddr", "interval", "enum"),
)
_TEXTS = ("text", "character varying", "character")


def native(layout: Layout) -> bool:
    """Return whether every column has the type that we would choose: then bytes can be sent."""
    for field, kind in zip(layout.fields, layout.kinds, strict=True):
        ours, theirs = sized(KINDS.name(field.dataType))[0], sized(kind)[0]
        if ours != theirs and not (ours == "text" and theirs in _TEXTS):
            return False
    return True
