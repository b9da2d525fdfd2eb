"""Reads Avro by functions made once for a pair of schemas: the one written with, and the one wanted.

fastavro would end the process when damaged bytes nest deep enough, and takes some damaged bytes for
values (a symbol counted from the end, an int beyond 32 bits).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import ConfigError, FormatError
from penstock.formats.avro.avro_primitives import (
    READERS,
    Body,
    Reader,
    read_long,
    read_string,
    start_block,
)
from penstock.formats.avro.avro_schema import (
    Names,
    kind_of,
    refuse_empty_items,
    renamed_fields,
    resolved,
)
from penstock.formats.avro.avro_writer import default_bytes
from penstock.formats.avro.logical import logical_of

# What Python takes for a record, and for each field of it.
_RECORD, _FIELD = 232, 104
_PROMOTED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "long"): int,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): float,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): bytes.decode,
}
_TIMES = frozenset(
    ["date", "time-millis", "time-micros"]
    + [
        f"{zone}timestamp-{unit}"
        for zone in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ]
)


class Readers:
    """Makes readers; one pair of record types has one reader, so that it may contain itself."""

    def __init__(self, written: Names, wanted: Names) -> None:
        self._written = written
        self._wanted = wanted
        self._records: dict[tuple[str, str], Reader] = {}

    def make(self, written: Any, wanted: Any) -> Reader:
        """Return the function that reads a value at a place in the bytes."""
        written, wanted = resolved(written, self._written), resolved(wanted, self._wanted)
        if kind_of(written, self._written) == "union":
            return self._union(written, wanted)
        if kind_of(wanted, self._wanted) == "union":
            return self._one_of(written, wanted)
        base = self._plain(written, wanted)
        logical = logical_of(wanted)
        return base if logical is None else _then(base, logical.from_avro)

    def _plain(self, written: Any, wanted: Any) -> Reader:
        kind, other = kind_of(written, self._written), kind_of(wanted, self._wanted)
        _same_unit(written, wanted)
        if kind == other:
            _same_decimal(written, wanted)
            return READERS.get(kind) or getattr(self, f"_{kind}")(written, wanted)
        if (kind, other) not in _PROMOTED:
            raise ConfigError(f"{kind} was written, and {other} is wanted")
        return _then(READERS[kind], _PROMOTED[kind, other])

    def _union(self, written: Any, wanted: Any) -> Reader:
        # A branch that does not fit matters only when a value of it comes.
        branches = [self._or_refusal(branch, wanted) for branch in written]
        count = len(branches)

        def read(data: Body, at: int) -> tuple[Any, int]:
            branch, at = read_long(data, at)
            if not 0 <= branch < count:
                raise FormatError(f"branch {branch} of a union of {count}")
            return branches[branch](data, at)

        return read

    def _or_refusal(self, written: Any, wanted: Any) -> Reader:
        try:
            return self.make(written, wanted)
        except ConfigError as error:
            reason = str(error)

        def refuse(_data: Body, _at: int) -> tuple[Any, int]:
            raise FormatError(reason)

        return refuse

    def _one_of(self, written: Any, wanted: Any) -> Reader:
        kind = kind_of(written, self._written)
        same_first = sorted(wanted, key=lambda branch: kind_of(branch, self._wanted) != kind)
        for branch in same_first:
            try:
                return self.make(written, branch)
            except ConfigError:
                continue
        kinds = " or ".join(kind_of(branch, self._wanted) for branch in wanted)
        raise ConfigError(f"{kind} was written, and {kinds} is wanted")

    def _record(self, written: Any, wanted: Any) -> Reader:
        _same_name(written, wanted)
        key = (written["name"], wanted["name"])
        if key in self._records:
            return self._records[key]
        fields: list[tuple[str | None, Reader]] = []
        added: list[tuple[str, Callable[[], Any]]] = []

        def read(data: Body, at: int) -> tuple[Any, int]:
            record = {}
            data.budget.spend(_RECORD + _FIELD * (len(fields) + len(added)))
            for name, read_field in fields:
                value, at = read_field(data, at)
                if name is not None:
                    record[name] = value
            for name, default in added:
                record[name] = default()
            return record, at

        self._records[key] = read
        try:
            self._fill(written, wanted, fields, added)
        except ConfigError:
            # Half a reader must not serve another branch of a union.
            del self._records[key]
            raise
        return read

    def _fill(self, written: Any, wanted: Any, fields: list[Any], added: list[Any]) -> None:
        left = {field["name"]: field for field in wanted["fields"]}
        aliases = renamed_fields(written, wanted)
        for field in written["fields"]:
            name = field["name"] if field["name"] in left else aliases.get(field["name"])
            target = left.pop(name, None) if name else None
            if target is None:
                skip = Readers(self._written, self._written).make(field["type"], field["type"])
                fields.append((None, skip))
            else:
                fields.append((name, self.make(field["type"], target["type"])))
        added += [(name, self._added(name, field)) for name, field in left.items()]

    def _added(self, name: str, field: Any) -> Callable[[], Any]:
        if "default" not in field:
            raise ConfigError(f"field {name!r} was not written, and has no default")
        kept: list[tuple[bytes, Reader]] = []

        def value() -> Any:
            if not kept:
                data = default_bytes(field["type"], field["default"], self._wanted)
                readers = Readers(self._wanted, self._wanted)
                kept.append((data, readers.make(field["type"], field["type"])))
            data, read = kept[0]
            return read(Body.of(data), 0)[0]

        return value

    def _array(self, written: Any, wanted: Any) -> Reader:
        refuse_empty_items(written, self._written)
        read_item = self.make(written["items"], wanted["items"])

        def read(data: Body, at: int) -> tuple[Any, int]:
            items: list[Any] = []
            count, at = read_long(data, at)
            while count:
                count, at = start_block(count, data, at)
                for _ in range(count):
                    item, at = read_item(data, at)
                    items.append(item)
                count, at = read_long(data, at)
            return items, at

        return read

    def _map(self, written: Any, wanted: Any) -> Reader:
        read_item = self.make(written["values"], wanted["values"])

        def read(data: Body, at: int) -> tuple[Any, int]:
            items: dict[str, Any] = {}
            count, at = read_long(data, at)
            while count:
                count, at = start_block(count, data, at)
                for _ in range(count):
                    key, at = read_string(data, at)
                    items[key], at = read_item(data, at)
                count, at = read_long(data, at)
            return items, at

        return read

    def _enum(self, written: Any, wanted: Any) -> Reader:
        _same_name(written, wanted)
        known = set(wanted["symbols"])
        symbols = [name if name in known else wanted.get("default") for name in written["symbols"]]

        def read(data: Body, at: int) -> tuple[Any, int]:
            number, at = read_long(data, at)
            if not 0 <= number < len(symbols):
                raise FormatError(f"symbol {number} of an enum of {len(symbols)}")
            if symbols[number] is None:
                raise FormatError(f"symbol {written['symbols'][number]!r} is not wanted")
            return symbols[number], at

        return read

    def _fixed(self, written: Any, wanted: Any) -> Reader:
        _same_name(written, wanted)
        size = written["size"]
        if size != wanted["size"]:
            raise ConfigError(f"{size} bytes were written, and {wanted['size']} are wanted")

        def read(data: Body, at: int) -> tuple[Any, int]:
            if at + size > len(data):
                raise FormatError("the bytes end too early")
            return data[at : at + size], at + size

        return read


def _then(base: Reader, convert: Callable[[Any], Any]) -> Reader:
    def read(data: Body, at: int) -> tuple[Any, int]:
        raw, at = base(data, at)
        return convert(raw), at

    return read


def _same_name(written: Any, wanted: Any) -> None:
    # Avro compares names without their namespaces, and the reader's other names for the type.
    short = written["name"].rpartition(".")[2]
    names = (wanted["name"], *wanted.get("aliases", ()))
    if short not in {name.rpartition(".")[2] for name in names}:
        raise ConfigError(f"{written['name']} was written, and {wanted['name']} is wanted")


def _same_unit(written: Any, wanted: Any) -> None:
    # Avro itself would take the number of one unit for that of another.
    old, new = _unit(written), _unit(wanted)
    if old and new and old != new:
        raise ConfigError(
            f"{written['logicalType']} was written, and {wanted['logicalType']} is wanted"
        )


def _unit(schema: Any) -> str | None:
    name = str(schema.get("logicalType")) if isinstance(schema, dict) else ""
    return name.removeprefix("local-") if name in _TIMES else None


def _same_decimal(written: Any, wanted: Any) -> None:
    if logical_of(written) is None or logical_of(wanted) is None:
        return
    for key in ("precision", "scale"):
        old, new = written.get(key, 0), wanted.get(key, 0)
        if old != new:
            raise ConfigError(f"a decimal of {key} {old} was written, and {new} is wanted")
