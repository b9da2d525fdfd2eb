"""Every vector that DolphinDB's own software made: read to its value, and written to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import FormatError
from penstock.formats.dolphindb import (
    AnyVector,
    Dictionary,
    DolphinDB,
    Int128,
    Matrix,
    NanoTime,
    Null,
    Pair,
    ValueSet,
)
from penstock.formats.dolphindb.arrow_conversion import type_of
from penstock.formats.dolphindb.choosing import typed
from penstock.formats.dolphindb.containers import python_items

VECTORS = json.loads((Path(__file__).parent / "dolphindb-wire-vectors.json").read_text())
WRITTEN = [each for each in VECTORS if not each.get("decode_only")]
FORMAT = DolphinDB()


def name(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def moment(value: Any, kind: str) -> str:
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, "ns"))
    if kind == "DATEHOUR":
        return str(value.strftime("%Y-%m-%dT%H"))
    digits = {"TIME": "milliseconds", "TIMESTAMP": "milliseconds", "MINUTE": "minutes"}
    if kind in digits:
        return str(value.isoformat(timespec=digits[kind]))
    if kind.startswith("NANO") and not isinstance(value, NanoTime):
        return str(value.isoformat(timespec="microseconds")) + "000"
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def scalar(value: Any, kind: str) -> Any:
    """Show a scalar as the vectors do."""
    if isinstance(value, list):
        return [scalar(each, kind) for each in value]
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    is_plain = value is None or isinstance(value, bool | str | int | float)
    return value if is_plain and not isinstance(value, Int128 | NanoTime) else moment(value, kind)


def vector(array: pa.Array | AnyVector) -> dict[str, Any]:
    if isinstance(array, AnyVector):
        return {"type": "ANY", "values": [item(each) for each in array]}
    found = type_of(array)
    suffix = "[]" if pa.types.is_list(array.type) else ""
    inner = array.type.value_type if suffix else array.type
    scale = {"scale": inner.scale} if pa.types.is_decimal(inner) else {}
    return {"type": found.name + suffix, "values": scalar(python_items(array), found.name), **scale}


def item(value: Any) -> dict[str, Any]:
    """Show any object as the vectors show it: form, type, value."""
    if isinstance(value, pa.Array | AnyVector):
        found = vector(value)
        return {"form": "VECTOR", "value": found.pop("values"), **found}
    if isinstance(value, pa.Table):
        names = value.column_names
        columns = [{"name": each, **vector(value[each].combine_chunks())} for each in names]
        return {"form": "TABLE", "type": "BASIC", "value": {"columns": columns}}
    if isinstance(value, Pair | ValueSet):
        form, array = ("PAIR", value.items) if isinstance(value, Pair) else ("SET", value.members)
        return {"form": form, "type": vector(array)["type"], "value": vector(array)["values"]}
    if isinstance(value, Dictionary):
        keys, values = vector(value.names), vector(value.contents)
        found = {"keys": keys, "values": values}
        return {"form": "DICTIONARY", "type": values["type"], "value": found}
    return matrix(value) if isinstance(value, Matrix) else one(value)


def one(value: Any) -> dict[str, Any]:
    kind = typed(value)[0].name
    scale = {"scale": -value.as_tuple().exponent} if kind.startswith("DECIMAL") else {}
    return {"form": "SCALAR", "type": kind, "value": scalar(value, kind), **scale}


def matrix(value: Matrix) -> dict[str, Any]:
    flat = vector(value.values)
    data = [flat["values"][at : at + value.rows] for at in range(0, len(value.values), value.rows)]
    labels = [
        None if each is None else vector(each) for each in (value.row_labels, value.column_labels)
    ]
    shown = {
        "rows": value.rows,
        "columns": value.columns,
        "data": data,
        "rowLabels": labels[0],
        "columnLabels": labels[1],
    }
    return {"form": "MATRIX", "type": flat["type"], "value": shown}


@pytest.mark.parametrize("given", VECTORS, ids=name)
def test_a_vector_is_read_as_its_value_with_its_type(given: dict[str, Any]) -> None:
    expected = {key: given[key] for key in ("form", "type", "value", "scale") if key in given}

    found = FORMAT.decode(bytes.fromhex(given["hex"]))

    if given["form"] == "SCALAR" and given["value"] is None:
        assert found is None
    else:
        assert item(found) == expected


@pytest.mark.parametrize("given", WRITTEN, ids=name)
def test_what_was_read_is_written_to_the_same_bytes(given: dict[str, Any]) -> None:
    data = bytes.fromhex(given["hex"])
    found = FORMAT.decode(data)
    value = Null(given["type"], given.get("scale", 0)) if found is None else found

    assert FORMAT.encode(value).hex() == given["hex"]


@pytest.mark.parametrize("given", VECTORS, ids=name)
def test_a_byte_too_many_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="1 bytes are left over"):
        FORMAT.decode(bytes.fromhex(given["hex"]) + b"\0")


@pytest.mark.parametrize("given", VECTORS, ids=name)
def test_every_cut_is_an_error(given: dict[str, Any]) -> None:
    data = bytes.fromhex(given["hex"])

    for length in range(len(data)):
        with pytest.raises(FormatError):
            FORMAT.decode(data[:length])


def test_there_are_as_many_vectors_as_were_made() -> None:
    assert (len(VECTORS), len(WRITTEN)) == (109, 107)
