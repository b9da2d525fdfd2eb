"""Measurements as values of records: JSON, or any format that rows can be written in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from penstock.encode.column_bytes import Encode
from penstock.encode.column_encodes import column_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.schema_registration import Target
from penstock.imports.host_metrics.measuring import Measured

# One for each topic and form of rows: a schema is registered once in a process.
_encodes: dict[tuple[str, str, str], Encode] = {}


def values_of(measured: Sequence[Measured], chosen: FormatChoice, topic: str) -> list[bytes]:
    """Return the value of each measurement.

    >>> values_of([{"kind": "load", "load1": 0.5}], FormatChoice(bare="json"), "metrics")
    [b'{"kind":"load","load1":0.5}']
    """
    if chosen.name == "json":
        return [msgspec.json.encode(each) for each in measured]
    if not measured:
        return []
    rows = rows_of(measured)
    known = topic, str(rows.type), repr(chosen)
    if known not in _encodes:
        _encodes[known] = column_encode(chosen, rows.type, Target(topic, "value"))
    values: list[bytes] = _encodes[known](rows).to_pylist()
    return values


def rows_of(measured: Sequence[Measured]) -> pa.StructArray:
    """Return measurements as rows; a measurement that lacks a value has a null.

    >>> rows_of([{"a": 1}, {"a": 2, "b": None}]).type
    StructType(struct<a: int64, b: string>)
    """
    names = dict.fromkeys(name for each in measured for name in each)
    columns = [pa.array([each.get(name) for each in measured]) for name in names]
    # Values that no measurement has are texts where machines have them.
    known = [one.cast(pa.string()) if pa.types.is_null(one.type) else one for one in columns]
    return pa.StructArray.from_arrays(known, names=[*names])
