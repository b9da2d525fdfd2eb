"""The options of the decodes for other formats than JSON, and the rows that Spark gets from them."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from penstock.decode.csv_decode import CsvDecode
from penstock.decode.workers import _failed, _rows
from penstock.formats import find_format
from penstock.pipeline import FAILED, registry

ROW = {"n": 1, "s": "x"}
SCHEMA = {"schema": "n int not null, s string"}
GOOD: dict[str, tuple[dict[str, Any], bytes, dict[str, Any]]] = {
    "csv": (SCHEMA, b"1,x\n1,x", ROW),
    "arrow": (SCHEMA, find_format("arrow").encode(pa.table({"n": [1, 1], "s": ["x", "x"]})), ROW),
    "dolphindb": (SCHEMA, find_format("dolphindb").encode(pa.table({"n": [1, 1], "s": ["x", "x"]})), ROW),
    "auto": (SCHEMA, b'[{"n": 1, "s": "x"}, {"n": 1, "s": "x"}]', ROW),
    "primitive": ({"type": "short", "column": "n"}, b"\0\1", {"n": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_rows_have_the_offset_of_their_record_and_bad_records_are_marked(name: str) -> None:
    options, good, row = GOOD[name]
    decode: Any = registry.component("decode", name).model_validate(options)
    make = pickle.loads(pickle.dumps(decode.kernel()))
    batch = pa.record_batch({"value": [good, b"\x01bad", good], "offset": [5, 6, 7]})
    rows, failed = _rows(make()(batch), batch, {"kafka_offset": "offset"})
    expected = [row | {"kafka_offset": offset} for offset in (5, 7)]
    found = [{key: one[key] for key in one if key != FAILED} for one in rows.to_pylist()]
    times = 1 if name == "primitive" else 2
    assert found == [one for one in expected for _ in range(times)]
    assert failed.num_rows == 1
    (bad,) = _failed(make()(batch).failures, batch).to_pylist()
    assert (bad["offset"], bad["value"], bool(bad["error"])) == (6, b"\x01bad", True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ",,"}, "one ASCII character each"),
        ({"delimiter": "\n"}, "one ASCII character each"),
        ({"quote": "é"}, "one ASCII character each"),
        ({"quote": ","}, "different characters"),
        ({"escape": '"'}, "different characters"),
        ({"schema": "a array<int>"}, "a field of CSV is one text"),
    ],
)
def test_options_of_csv_that_cannot_work_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CsvDecode.model_validate(SCHEMA | options)
