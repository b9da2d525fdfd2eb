"""Writes Python values as Avro, by functions made once for a schema.

fastavro would write 1.5 as the int 1, numbers beyond 32 bits as an int, a time without a zone as
local time; and a value that is nested deep enough would end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from penstock.errors import FormatError
from penstock.formats.avro.avro_primitives import (
    WRITERS,
    Writer,
    no,
    number_bytes,
    write_long,
    write_string,
)
from penstock.formats.avro.avro_schema import Names, kind_of, refuse_empty_items, resolved
from penstock.formats.avro.logical import Logical, logical_of

Default = Callable[[], bytes]
Field = tuple[str, Writer, Default | None]
_NOT_ARRAYS = (str, bytes, bytearray, memoryview, Mapping)


class Writers:
    """Makes writers; one record type has one writer, so that it may contain itself."""

    def __init__(
        self, names: Names, find_logical: Callable[[Any], Logical | None] = logical_of
    ) -> None:
        self._names = names
        self._find_logical = find_logical
        self._records: dict[str, Writer] = {}

    def make(self, schema: Any) -> Writer:
        """Return the function that appends a value to the bytes."""
        schema = resolved(schema, self._names)
        kind = kind_of(schema, self._names)
        base = WRITERS.get(kind) or getattr(self, f"_{kind}")(schema)
        logical = self._find_logical(schema)
        if logical is None:
            return base
        convert = logical.to_avro
        return lambda value, out: base(convert(value), out)

    def _record(self, schema: Any) -> Writer:
        name = schema["name"]
        if name in self._records:
            return self._records[name]
        fields: list[Field] = []

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, Mapping):
                raise no(value, f"mapping of the fields of {name}")
            taken = 0
            for field, write_field, default in fields:
                if field in value:
                    taken += 1
                    try:
                        write_field(value[field], out)
                    except FormatError as error:
                        raise FormatError(f"{field}: {error}") from None
                elif default is None:
                    raise FormatError(f"{field}: is missing, and has no default")
                else:
                    out += default()
            if taken != len(value):
                unknown = sorted(map(str, value.keys() - {field for field, _, _ in fields}))
                raise FormatError(f"{name} has no field {', '.join(unknown)}")

        self._records[name] = write
        for field in schema["fields"]:
            fields.append((field["name"], self.make(field["type"]), self._default(field)))
        return write

    def _default(self, field: Any) -> Default | None:
        if "default" not in field:
            return None
        # Later, because the default of a field may be of the type that is being made.
        return cache(lambda: default_bytes(field["type"], field["default"], self._names))

    def _array(self, schema: Any) -> Writer:
        refuse_empty_items(schema, self._names)
        write_item = self.make(schema["items"])

        def write(value: Any, out: bytearray) -> None:
            if isinstance(value, _NOT_ARRAYS) or not hasattr(value, "__len__"):
                raise no(value, "array")
            if len(value):
                write_long(len(value), out)
                for item in value:
                    write_item(item, out)
            out.append(0)

        return write

    def _map(self, schema: Any) -> Writer:
        write_item = self.make(schema["values"])

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, Mapping):
                raise no(value, "map")
            if value:
                write_long(len(value), out)
                for key, item in value.items():
                    write_string(key, out)
                    write_item(item, out)
            out.append(0)

        return write

    def _union(self, schema: Any) -> Writer:
        kinds = [kind_of(branch, self._names) for branch in schema]
        # A record is more than a map; a whole number stays one, and no digits are lost, where it can be.
        order = sorted(range(len(schema)), key=lambda at: _LAST_CHOICES.get(kinds[at], 0))
        heads = [number_bytes(at) for at in range(len(schema))]
        branches = [(heads[at], self.make(schema[at])) for at in order if kinds[at] != "null"]
        null = heads[kinds.index("null")] if "null" in kinds else None

        def write(value: Any, out: bytearray) -> None:
            if value is None and null is not None:
                out += null
                return
            mark = len(out)
            reason: FormatError | None = None
            for head, write_branch in branches:
                try:
                    out += head
                    write_branch(value, out)
                    return
                except FormatError as error:
                    reason = error
                    del out[mark:]
            raise reason if len(branches) == 1 and reason else no(value, " or ".join(kinds))

        return write

    def _enum(self, schema: Any) -> Writer:
        symbols = {symbol: number_bytes(at) for at, symbol in enumerate(schema["symbols"])}

        def write(value: Any, out: bytearray) -> None:
            try:
                out += symbols[value]
            except (KeyError, TypeError):
                raise no(value, f"symbol of {schema['name']}") from None

        return write

    def _fixed(self, schema: Any) -> Writer:
        size = schema["size"]

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, bytes | bytearray) or len(value) != size:
                raise no(value, f"value of {size} bytes")
            out += value

        return write


_LAST_CHOICES = {"map": 1, "double": 1, "float": 2}


class _DefaultWriters(Writers):
    """Writers of defaults: JSON, without logical types, in unions by the first branch that takes it."""

    def __init__(self, names: Names) -> None:
        super().__init__(names, lambda _: None)

    def make(self, schema: Any) -> Writer:
        """Return the function that appends a value of JSON to the bytes; text stands for bytes."""
        write = super().make(schema)
        if kind_of(schema, self._names) not in {"bytes", "fixed"}:
            return write

        def write_text(value: Any, out: bytearray) -> None:
            try:
                write(value.encode("latin-1") if isinstance(value, str) else value, out)
            except UnicodeEncodeError:
                raise no(value, "bytes") from None

        return write_text

    def _union(self, schema: Any) -> Writer:
        branches = [(number_bytes(at), self.make(branch)) for at, branch in enumerate(schema)]

        def write(value: Any, out: bytearray) -> None:
            mark = len(out)
            for head, write_branch in branches:
                try:
                    out += head
                    write_branch(value, out)
                    return
                except FormatError:
                    del out[mark:]
            raise no(value, " or ".join(kind_of(branch, self._names) for branch in schema))

        return write


def default_bytes(schema: Any, default: Any, names: Names) -> bytes:
    """Write the default of a field, which is JSON in the schema, without logical types."""
    out = bytearray()
    _DefaultWriters(names).make(schema)(default, out)
    return bytes(out)
