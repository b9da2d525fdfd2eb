"""The types of MariaDB."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
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

from penstock.sinks.jdbc.kinds import Kinds, is_text, sized

_KINDS = Kinds(
    names={
        BooleanType: "boolean",
        ByteType: "tinyint",
        ShortType: "smallint",
        IntegerType: "int",
        LongType: "bigint",
        FloatType: "float",
        DoubleType: "double",
        StringType: "longtext",
        BinaryType: "longblob",
        DateType: "date",
        # MariaDB's own timestamps end in 2038; these are in UTC.
        TimestampType: "datetime(6)",
        TimestampNTZType: "datetime(6)",
    },
    decimal="decimal",
    back={
        "tinyint": ByteType(),
        "smallint": ShortType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "float": FloatType(),
        "double": DoubleType(),
        **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext"), StringType()),
        **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), BinaryType()),
        **dict.fromkeys(("binary", "varbinary"), BinaryType()),
        "date": DateType(),
    },
    # A column made as `json` is shown as `longtext`.
    json=("json", "longtext"),
    texts=("uuid", "inet4", "inet6", "enum", "set"),
)
_KEY_LENGTH = 255


def name_of(kind: DataType) -> str:
    """Return MariaDB's type for this type of Spark."""
    return _KINDS.name(kind)


def key_kind(kind: DataType) -> str:
    """Return the type of a key's column: only what has a length can be indexed.

    >>> key_kind(StringType()), key_kind(LongType())
    ('varchar(255)', 'bigint')
    """
    if isinstance(kind, BinaryType):
        return f"varbinary({_KEY_LENGTH})"
    return f"varchar({_KEY_LENGTH})" if is_text(kind) else name_of(kind)


def known(kind: str, wanted: DataType) -> DataType | None:
    """Return a column's type as Spark has it; one that would cut a moment short is not taken.

    >>> known("datetime(6)", TimestampType()), known("datetime", TimestampType())
    (TimestampType(), None)
    """
    base, sizes = sized(kind.removesuffix(" unsigned"))
    if base == "datetime" and sizes == (6,):
        moment = isinstance(wanted, (TimestampType, TimestampNTZType))
        return wanted if moment else TimestampNTZType()
    if base == "tinyint" and isinstance(wanted, BooleanType):
        return wanted
    return _KINDS.known(kind.removesuffix(" unsigned"), wanted)
