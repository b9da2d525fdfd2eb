"""A batch whose rows take too much memory is decoded in parts: each record once, in order."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.decode.kernels.auto_kernel import AutoKernel
from penstock.decode.kernels.json.json_documents import DocumentKernel, Layout
from penstock.decode.kernels.key_kernel import with_keys
from penstock.decode.kernels.merging import WithTombstones
from penstock.decode.kernels.message_kernel import arrow_kernel, dolphindb_kernel
from penstock.decode.kernels.outcome import Kernel, in_parts
from penstock.formats import find_format
from penstock.pipeline.schema import Schema

LIMIT = 2**20
ROWS = 10_000
SCHEMA = Schema.parse("n bigint, m bigint")


def message(name: str, at: int) -> bytes:
    data: bytes = find_format(name).encode(pa.table({"n": pa.array([at] * ROWS, pa.int64())}))
    return data


def exploded(at: int) -> bytes:
    return json.dumps({"n": at, "s": "x" * 1000, "legs": [1] * 900}).encode()


KERNELS: dict[str, tuple[Any, Any]] = {
    "arrow": (arrow_kernel(SCHEMA), lambda at: message("arrow", at)),
    "dolphindb": (dolphindb_kernel(SCHEMA), lambda at: message("dolphindb", at)),
    "auto": (AutoKernel(SCHEMA), lambda at: message(("arrow", "dolphindb")[at % 2], at)),
    "json": (DocumentKernel(Schema.parse("n bigint, s string"), Layout(explode="legs")), exploded),
}


@pytest.fixture(params=sorted(KERNELS))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PENSTOCK_MAX_DECODED_BYTES", str(LIMIT))
    return KERNELS[request.param]


def found(kernel: Kernel, batch: pa.RecordBatch) -> tuple[list[int], list[int], int]:
    """Return the record of each run of rows, the failed records, and the largest part."""
    records, failed, largest, start = [], [], 0, 0
    for part, decoded in in_parts(kernel, batch):
        failed += [start + failure.index for failure in decoded.failures]
        records += [n for n in dict.fromkeys(decoded.rows.column("n").to_pylist()) if n is not None]
        largest = max(largest, decoded.rows.nbytes)
        start += part.num_rows
    assert start == batch.num_rows
    return records, failed, largest


def test_each_record_is_decoded_once_and_no_part_is_much_larger_than_allowed(case: Any) -> None:
    kernel, value = case
    values = [*map(value, range(12)), b"bad", value(13)]
    batch = pa.record_batch({"value": pa.array(values, pa.binary())})

    records, failed, largest = found(kernel, batch)

    assert (records, failed) == ([*range(12), 13], [12])
    assert largest < 3 * LIMIT


def test_keys_and_tombstones_stay_with_their_records(case: Any) -> None:
    kernel, value = case
    values = [value(at) if at % 3 else None for at in range(9)]
    keys = [json.dumps({"k": at}).encode() for at in range(9)]
    batch = pa.record_batch({"value": pa.array(values), "key": pa.array(keys)})
    of_keys = DocumentKernel(Schema.parse("k bigint"), Layout())
    both = with_keys(lambda: WithTombstones(kernel), lambda: of_keys, "key_")

    rows = [row for _, decoded in in_parts(both, batch) for row in decoded.rows.to_pylist()]

    seen = list(dict.fromkeys((row["key_k"], row["n"]) for row in rows))
    assert seen == [(at, at if at % 3 else None) for at in range(9)]
