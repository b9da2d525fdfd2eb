"""How a table may follow its rows: new columns and wider types; anything else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import types as t

from penstock.errors import ConfigError

_CHAINS: tuple[tuple[type[t.DataType], ...], ...] = (
    (t.ByteType, t.ShortType, t.IntegerType, t.LongType),
    (t.FloatType, t.DoubleType),
)


@dataclass(frozen=True)
class Evolution:
    """What has to change in a table before it can take the rows."""

    added: tuple[t.StructField, ...] = ()
    widened: tuple[t.StructField, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)

    def applied(self, table: t.StructType) -> t.StructType:
        """Return the table's columns after the change."""
        wide = {field.name.lower(): field for field in self.widened}
        kept = [wide.get(field.name.lower(), field) for field in table.fields]
        return t.StructType([*kept, *self.added])


def evolution(table: t.StructType, rows: t.StructType, named: str) -> Evolution:
    """Return how the table must change for these rows; `named` is the table in messages.

    >>> table = t.StructType().add("id", "integer").add("name", "string")
    >>> change = evolution(table, t.StructType().add("id", "long").add("price", "double"), "t")
    >>> [field.name for field in change.added], [field.name for field in change.widened]
    (['price'], ['id'])
    """
    known = {field.name.lower(): field for field in table.fields}
    added = tuple(
        t.StructField(field.name, field.dataType)
        for field in rows.fields
        if field.name.lower() not in known
    )
    widened = []
    for field in rows.fields:
        old = known.get(field.name.lower())
        if old is None or fits(field.dataType, old.dataType):
            continue
        if not fits(old.dataType, field.dataType):
            was, new = old.dataType.simpleString(), field.dataType.simpleString()
            raise ConfigError(
                f"{named} has the column {old.name!r} as {was}, and the rows bring {new}: a table may "
                "gain columns and its types may grow, no more; cast it in a step, as in "
                f"'CAST({field.name} AS {was})', or write to another table"
            )
        widened.append(t.StructField(old.name, field.dataType, old.nullable))
    return Evolution(added, tuple(widened))


def fits(narrow: t.DataType, wide: t.DataType) -> bool:
    """Return whether every value of one type is, exactly, a value of the other.

    >>> fits(t.IntegerType(), t.LongType()), fits(t.LongType(), t.IntegerType())
    (True, False)
    """
    if isinstance(narrow, t.DecimalType) and isinstance(wide, t.DecimalType):
        whole = wide.precision - wide.scale >= narrow.precision - narrow.scale
        return whole and wide.scale >= narrow.scale
    for chain in _CHAINS:
        if type(narrow) in chain and type(wide) in chain:
            return chain.index(type(narrow)) <= chain.index(type(wide))
    # `simpleString` says nothing of nullability.
    return narrow.simpleString().lower() == wide.simpleString().lower()


def with_nested(kind: t.DataType) -> Iterator[t.DataType]:
    """Yield a type and all types inside it."""
    yield kind
    if isinstance(kind, t.StructType):
        inner = [each.dataType for each in kind]
    elif isinstance(kind, t.MapType):
        inner = [kind.keyType, kind.valueType]
    else:
        inner = [kind.elementType] if isinstance(kind, t.ArrayType) else []
    for each in inner:
        yield from with_nested(each)
