"""What DolphinDB's types become in numpy and pandas, and JSON of tables."""

from __future__ import annotations

import json
from datetime import date, time
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.integration.dolphindb.documented import documented

from penstock.compat import dolphindb as kafka
from penstock.compat.dolphindb.values import to_numpy, to_python
from penstock.errors import ConfigError, FormatError
from penstock.formats import find_format
from penstock.formats.dolphindb import AnyVector, Matrix, Month, Pair, WireType

DOLPHINDB = find_format("dolphindb")


def through(value: Any) -> Any:
    """A value that went through a message."""
    return to_python(DOLPHINDB.decode(DOLPHINDB.encode(value)))


@pytest.mark.parametrize(
    ("array", "dtype", "items"),
    [
        (pa.array([True, False]), "bool", [True, False]),
        (pa.array([True, None]), "object", [True, None]),
        (pa.array([1, 2], pa.int8()), "int8", [1, 2]),
        (pa.array([1, 2]), "int64", [1, 2]),
        (pa.array([2**60 + 1, None]), "object", [2**60 + 1, None]),
        (pa.array([1.5, 2.5], pa.float32()), "float32", [1.5, 2.5]),
        (pa.array(["a", ""]), "object", ["a", ""]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "object", ["a", "b", "a"]),
        (pa.array([b"\xff"]), "object", [b"\xff"]),
        (pa.array([date(2024, 8, 30), None]), "datetime64[D]", [date(2024, 8, 30), None]),
        (pa.array([Decimal("1.50"), None]), "object", [Decimal("1.50"), None]),
        (pa.array([time(1, 2, 3), None], pa.time32("s")), "object", [time(1, 2, 3), None]),
        (pa.array([UUID(int=7).bytes], pa.uuid()), "object", [UUID(int=7)]),
        (pa.nulls(2), "object", [None, None]),
    ],
)  # fmt: skip
def test_a_vector_keeps_every_value(array: pa.Array, dtype: str, items: list[Any]) -> None:
    found = through(array)
    assert (str(found.dtype), found.tolist()) == (dtype, items)
    found[0] = found[-1]


def test_small_whole_numbers_with_nulls_are_floats() -> None:
    found = through(pa.array([7, None], pa.int32()))
    assert found.dtype == np.float64
    assert (found[0], np.isnan(found[1])) == (7, True)


@pytest.mark.parametrize("unit", ["M", "h", "m", "s", "ms", "ns"])
def test_moments_keep_their_unit(unit: str) -> None:
    moments = np.array(["2024-08-30", "NaT"], dtype=f"M8[{unit}]")
    found = through(moments)
    assert found.dtype == moments.dtype
    np.testing.assert_array_equal(found, moments)


def test_a_table_becomes_a_data_frame() -> None:
    table = pa.table(
        {
            "day": pa.array([date(2024, 8, 30)]),
            "sym": pa.array(["a"]).dictionary_encode(),
            "rows": pa.array([[1, 2]], pa.list_(pa.int32())),
            "price": pa.array([Decimal("1.5")]),
        }
    )
    found = through(table)
    assert [str(kind) for kind in found.dtypes] == ["datetime64[s]", "object", "object", "object"]
    assert found["rows"][0].tolist() == [1, 2]
    assert found["price"][0] == Decimal("1.5")


def test_the_other_forms_become_pythons_own() -> None:
    mixed = through(AnyVector([1, "a", [1.5, 2.5], pa.table({"x": [1]})]))
    assert mixed[:2] == [1, "a"]
    assert mixed[2].tolist() == [1.5, 2.5]
    assert mixed[3].to_dict("list") == {"x": [1]}
    assert through({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert through({1, 2}) == {1, 2}
    assert through(Pair(pa.array([3, 5]))).tolist() == [3, 5]
    assert through(np.array([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (through(Month(2024, 8, 1)), through(None)) == (date(2024, 8, 1), None)
    assert through([IPv4Address("10.0.0.1")]).tolist() == [IPv4Address("10.0.0.1")]


def test_the_labels_of_a_matrix_are_those_of_a_data_frame() -> None:
    matrix = Matrix(pa.array([1, 2, 3, 4]), 2, 2, pa.array(["x", "y"]), pa.array(["a", "b"]))
    assert through(matrix).to_dict() == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 4}}


def test_an_extension_type_without_a_unit_of_numpys_own_is_objects() -> None:
    found = to_numpy(pa.array([None], WireType("MINUTE")))
    assert (str(found.dtype), found.tolist()) == ("object", [None])


@documented("toStdJson")
def test_json_of_a_table_has_an_object_for_each_row() -> None:
    table = pd.DataFrame({"c1": [1, 2], "c2": ["ä", None], "c3": [np.nan, 1.5]})
    text = kafka.toStdJson(table)
    assert text == '[{"c1": 1,"c2": "ä","c3": null},{"c1": 2,"c2": null,"c3": 1.5}]'
    assert json.loads(kafka.toStdJson(table[:0])) == []
    assert kafka.toStdJson({"a": [1, 2]}) == '{"a": [1,2]}'


@documented("parseJsonTable")
def test_json_texts_become_a_table_of_declared_types() -> None:
    texts = [
        '{"date": "2024.08.30", "id": 1, "msg": "kafka", "at": "2024.08.30T12:00:00.125"}',
        '{"date": "2024-08-31", "id": null, "more": [1]}',
    ]
    names = ["date", "id", "msg", "at"]
    schema = pd.DataFrame({"name": names, "type": ["DATE", "INT", "STRING", "TIMESTAMP"]})
    found = kafka.parseJsonTable(pd.Series(texts), schema)
    assert list(found.columns) == names
    assert found["date"].tolist() == [pd.Timestamp("2024-08-30"), pd.Timestamp("2024-08-31")]
    assert found["id"].isna().tolist() == [False, True]
    assert found["msg"].tolist() == ["kafka", None]
    assert found["at"][0] == pd.Timestamp("2024-08-30T12:00:00.125")
    whole = kafka.parseJsonTable(['{"id": 1}'], {"id": "int"})
    assert str(whole["id"].dtype) == "int32"


@documented("parseJsonTable")
@pytest.mark.parametrize(
    ("text", "schema", "error", "words"),
    [
        ('{"id": 1', {"id": "INT"}, FormatError, "row 0 is no JSON"),
        ("[1]", {"id": "INT"}, FormatError, "row 0 is no JSON object, but list"),
        ('{"id": "x"}', {"id": "INT"}, FormatError, "column 'id' of type INT"),
        ('{"d": 7}', {"d": "DATE"}, FormatError, "column 'd' of type DATE: 7 is no text"),
        ('{"d": "soon"}', {"d": "DATE"}, FormatError, "column 'd' of type DATE"),
        ("{}", {"id": "INTEGER"}, ConfigError, "type 'INTEGER' is unknown here"),
        ("{}", ["id"], ConfigError, "a schema of list is not allowed"),
    ],
)
def test_json_that_does_not_fit_is_told_with_its_place(
    text: str, schema: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        kafka.parseJsonTable([text], schema)
