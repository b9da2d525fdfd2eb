"""How a table may follow its rows: new columns and wider types; anything else is refused."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from penstock.errors import ConfigError

_CHAINS: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


@dataclass(frozen=True)
class Evolution:
    """What has to change in a table before it can take the rows."""

    added: tuple[StructField, ...] = ()
    widened: tuple[StructField, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)

    def applied(self, table: StructType) -> StructType:
        """Return the table's columns after the change."""
        wide = {field.name.lower(): field for field in self.widened}
        kept = [wide.get(field.name.lower(), field) for field in table.fields]
        return StructType([*kept, *self.added])


def evolution(table: StructType, rows: StructType, named: str) -> Evolution:
    """Say how the table must change for these rows; `named` is the table in a refusal's words.

    >>> table = StructType().add("id", "integer").add("name", "string")
    >>> change = evolution(table, StructType().add("id", "long").add("price", "double"), "t")
    >>> [field.name for field in change.added], [field.name for field in change.widened]
    (['price'], ['id'])
    """
    known = {field.name.lower(): field for field in table.fields}
    added = tuple(
        StructField(field.name, field.dataType)
        for field in rows.fields
        if field.name.lower() not in known
    )
    widened = []
    for field in rows.fields:
        old = known.get(field.name.lower())
        if old is None or fits(field.dataType, old.dataType):
            continue
        if not fits(old.dataType, field.dataType):
            raise _refusal(named, old, field)
        widened.append(StructField(old.name, field.dataType, old.nullable))
    return Evolution(added, tuple(widened))


def fits(narrow: DataType, wide: DataType) -> bool:
    """Whether every value of one type is, exactly, a value of the other.

    >>> fits(IntegerType(), LongType()), fits(LongType(), IntegerType())
    (True, False)
    """
    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        whole = wide.precision - wide.scale >= narrow.precision - narrow.scale
        return whole and wide.scale >= narrow.scale
    for chain in _CHAINS:
        if type(narrow) in chain and type(wide) in chain:
            return chain.index(type(narrow)) <= chain.index(type(wide))
    return _bare(narrow) == _bare(wide)


def _bare(kind: DataType) -> str:
    """A type without what it says of nulls: `simpleString` leaves that out."""
    return kind.simpleString().lower()


def _refusal(named: str, old: StructField, new: StructField) -> ConfigError:
    return ConfigError(
        f"{named} has the column {old.name!r} as {old.dataType.simpleString()}, and the rows bring "
        f"{new.dataType.simpleString()}: a table may gain columns and its types may grow, no more; "
        f"cast it in a step, as in 'CAST({new.name} AS {old.dataType.simpleString()})', "
        "or write to another table"
    )
