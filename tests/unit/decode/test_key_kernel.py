"""Keys with values: joined by record, failures of either."""

from __future__ import annotations

import pyarrow as pa

from penstock.decode.kernels.json.json_documents import DocumentKernel, Layout
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.key_kernel import with_keys
from penstock.decode.kernels.outcome import Decoded, Kernel
from penstock.pipeline.schema import Schema


def value() -> Kernel:
    return JsonKernel(Schema.parse("n int"))


def key() -> Kernel:
    return JsonKernel(Schema.parse("id int not null"))


def decoded(*records: tuple[bytes | None, bytes | None], make: object = value) -> Decoded:
    keys, values = zip(*records, strict=True)
    arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return with_keys(make, key, "key_")(pa.RecordBatch.from_arrays(arrays, ["key", "value"]))  # type: ignore[arg-type]


def test_a_row_has_the_columns_of_its_key() -> None:
    found = decoded((b'{"id": 1}', b'{"n": 10}'), (b'{"id": 2}', b'{"n": 20}'))
    assert found.rows.to_pylist() == [{"n": 10, "key_id": 1}, {"n": 20, "key_id": 2}]
    assert (list(found.failures), found.origins) == ([], None)


def test_a_record_without_a_key_has_nulls() -> None:
    found = decoded((None, b'{"n": 10}'), (b'{"id": 2}', b'{"n": 20}'))
    assert found.rows.to_pylist() == [{"n": 10, "key_id": None}, {"n": 20, "key_id": 2}]


def test_a_record_fails_with_its_key_or_its_value_and_only_once() -> None:
    found = decoded(
        (b"bad", b'{"n": 0}'), (b'{"id": 1}', b"bad"), (b"bad", b"bad"), (b'{"id": 3}', b'{"n": 3}')
    )  # fmt: skip
    assert found.rows.to_pylist() == [{"n": 3, "key_id": 3}]
    assert found.origins is not None
    assert found.origins.to_pylist() == [3]
    assert [each.index for each in found.failures] == [0, 1, 2]
    assert found.failures[0].message.startswith("key: ")
    assert not found.failures[1].message.startswith("key: ")


def test_every_row_of_a_record_has_its_key() -> None:
    def twice() -> Kernel:
        def call(batch: pa.RecordBatch) -> Decoded:
            rows = pa.RecordBatch.from_pydict({"n": list(range(2 * batch.num_rows))})
            return Decoded(rows, (), pa.array([n // 2 for n in range(2 * batch.num_rows)]))

        return call

    found = decoded((b'{"id": 1}', b"x"), (b"bad", b"x"), (b'{"id": 3}', b"x"), make=twice)
    assert [(row["n"], row["key_id"]) for row in found.rows.to_pylist()] == [
        (0, 1), (1, 1), (4, 3), (5, 3),
    ]  # fmt: skip


def test_a_key_of_no_row_or_of_several_is_a_failure_of_its_record_alone() -> None:
    def exploded() -> Kernel:
        return DocumentKernel(Schema.parse("id int"), Layout(explode="ids"))

    keys = [
        b'{"ids": [{"id": 1}]}',
        b'{"ids": []}',
        None,
        b'{"ids": [{"id": 3}, {"id": 4}]}',
        b"bad",
    ]
    values = [b'{"n": %d}' % n for n in range(len(keys))]
    arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    records = pa.RecordBatch.from_arrays(arrays, ["key", "value"])
    for first in range(len(keys)):  # a neighbour that fails changes nothing
        found = with_keys(value, exploded, "key_")(records.slice(first))
        expected = [{"n": 0, "key_id": 1}, {"n": 2, "key_id": None}]
        assert found.rows.to_pylist() == [row for row in expected if row["n"] >= first]  # type: ignore[operator]
        failed = {each.index + first: each.error_type for each in found.failures}
        everything = {1: "NotOneRow", 3: "NotOneRow", 4: "MalformedJson"}
        assert failed == {at: kind for at, kind in everything.items() if at >= first}
