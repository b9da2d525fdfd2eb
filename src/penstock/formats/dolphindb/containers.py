"""DolphinDB's other forms: vectors of anything, pairs, matrices, sets and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, SupportsIndex

import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.dolphindb import moments
from penstock.formats.dolphindb.dolphindb_types import BY_NAME


class AnyVector(list[Any]):
    """ANY: a vector whose items are objects of any kind. A plain list of mixed values becomes one, too.

    >>> AnyVector([1, "a"])[0:1]
    AnyVector([1])
    """

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        item = super().__getitem__(place)
        return AnyVector(item) if isinstance(place, slice) else item

    def __repr__(self) -> str:
        return f"AnyVector({super().__repr__()})"


@dataclass(frozen=True)
class Pair:
    """PAIR: two values of one type, `3:5`.

    >>> list(Pair(pa.array([3, 5])))
    [3, 5]
    """

    items: pa.Array

    def __post_init__(self) -> None:
        if len(self.items) != 2:
            raise FormatError(f"a pair has two values, not {len(self.items)}")

    def __iter__(self) -> Iterator[Any]:
        return iter(python_items(self.items))


@dataclass(frozen=True)
class Matrix:
    """MATRIX: values of one type, column by column, with labels where it has some."""

    values: pa.Array
    rows: int
    columns: int
    row_labels: pa.Array | None = None
    column_labels: pa.Array | None = None

    def __post_init__(self) -> None:
        if len(self.values) != self.rows * self.columns:
            raise FormatError(
                f"a matrix of {self.rows} x {self.columns} has {self.rows * self.columns} values, "
                f"not {len(self.values)}"
            )
        _check_labels("row", self.row_labels, self.rows)
        _check_labels("column", self.column_labels, self.columns)

    def to_numpy(self) -> Any:
        """Return the values as a numpy array of rows and columns; nulls become NaN or None."""
        flat = self.values.to_numpy(zero_copy_only=False)
        return flat.reshape(self.columns, self.rows).T


class ValueSet(Set[Any]):
    """SET: different values of one type.

    >>> 4 in ValueSet(pa.array([4, 5]))
    True
    """

    def __init__(self, members: pa.Array) -> None:
        self.members = members
        self._found = frozenset(python_items(members))
        if len(self._found) != len(members):
            raise FormatError("a set holds a value twice")

    def __contains__(self, value: object) -> bool:
        return value in self._found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @classmethod
    def _from_iterable(cls, values: Iterable[Any]) -> frozenset[Any]:
        return frozenset(values)

    def __repr__(self) -> str:
        return f"ValueSet({self.members.to_pylist()})"


class Dictionary(Mapping[Any, Any]):
    """DICTIONARY: keys of one type and values of one type, or of any.

    >>> Dictionary(pa.array(["a"]), pa.array([1]))["a"]
    1
    """

    def __init__(self, names: pa.Array, contents: pa.Array | AnyVector) -> None:
        if len(names) != len(contents):
            raise FormatError(f"a dictionary of {len(names)} keys and {len(contents)} values")
        self.names = names
        self.contents = contents
        self._found = dict(zip(python_items(names), python_items(contents), strict=True))
        if len(self._found) != len(names):
            raise FormatError("a dictionary holds a key twice")

    def __getitem__(self, key: Any) -> Any:
        return self._found[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"Dictionary({self._found})"


def python_items(items: pa.Array | AnyVector) -> list[Any]:
    """Return the items as Python values; nanoseconds are kept, where Arrow's own way would drop them."""
    if isinstance(items, AnyVector):
        return list(items)
    if pa.types.is_dictionary(items.type):
        # One object for each text, however many items refer to it.
        texts = items.dictionary.to_pylist()
        return [None if at is None else texts[at] for at in items.indices.to_pylist()]
    names = {pa.timestamp("ns"): "NANOTIMESTAMP", pa.time64("ns"): "NANOTIME"}
    try:
        if items.type not in names:
            return list(items.to_pylist())
        type_ = BY_NAME[names[items.type]]
        numbers = items.cast(pa.int64()).to_pylist()
        return [None if each is None else moments.to_python(type_, each) for each in numbers]
    except (ValueError, OverflowError, KeyError) as error:
        raise FormatError(f"Python cannot hold every value of {items.type}: {error}") from error


def shared(items: pa.Array) -> pa.Array:
    """Return the items of which `python_items` makes objects of their own: of symbols, their base."""
    return items.dictionary if pa.types.is_dictionary(items.type) else items


def _check_labels(what: str, labels: pa.Array | None, count: int) -> None:
    if labels is not None and len(labels) != count:
        raise FormatError(f"{len(labels)} {what} labels for {count} {what}s")
