"""The types of MariaDB."""

from __future__ import annotations

from pyspark.sql import types as t

from penstock.sinks.database.type_map import TypeMap, is_text, sized

KINDS = TypeMap(
    names={
        t.BooleanType: "boolean",
        t.ByteType: "tinyint",
        t.ShortType: "smallint",
        t.IntegerType: "int",
        t.LongType: "bigint",
        t.FloatType: "float",
        t.DoubleType: "double",
        t.StringType: "longtext",
        t.BinaryType: "longblob",
        t.DateType: "date",
        # MariaDB's own timestamps end in 2038; these are in UTC.
        t.TimestampType: "datetime(6)",
        t.TimestampNTZType: "datetime(6)",
    },
    decimal="decimal",
    also={
        **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext"), t.StringType()),
        **dict.fromkeys(("tinyblob", "blob", "mediumblob", "binary", "varbinary"), t.BinaryType()),
    },
    # A column made as `json` is shown as `longtext`.
    json=("json", "longtext"),
    texts=("uuid", "inet4", "inet6", "enum", "set"),
)
_KEY_LENGTH = 255


def key_kind(kind: t.DataType) -> str:
    """Return the type of a key's column: only what has a length can be indexed.

    >>> key_kind(t.StringType()), key_kind(t.LongType())
    ('varchar(255)', 'bigint')
    """
    if isinstance(kind, t.BinaryType):
        return f"varbinary({_KEY_LENGTH})"
    return f"varchar({_KEY_LENGTH})" if is_text(kind) else KINDS.name(kind)


def known(kind: str, wanted: t.DataType) -> t.DataType | None:
    """Return a column's type as Spark has it; one that would cut a moment short is not taken.

    >>> known("datetime(6)", t.TimestampType()), known("datetime", t.TimestampType())
    (TimestampType(), None)
    """
    base, sizes = sized(kind.removesuffix(" unsigned"))
    if base == "datetime" and sizes == (6,):
        moment = isinstance(wanted, (t.TimestampType, t.TimestampNTZType))
        return wanted if moment else t.TimestampNTZType()
    if base == "tinyint" and isinstance(wanted, t.BooleanType):
        return wanted
    return KINDS.known(kind.removesuffix(" unsigned"), wanted)
