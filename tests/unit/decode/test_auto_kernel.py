"""The auto kernel: formats mixed in one batch, each read as by its own kernel, in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.decode.kernels.auto_kernel import AutoKernel
from penstock.decode.kernels.json.json_list_kernel import JsonListKernel
from penstock.formats import find_format
from penstock.pipeline.schema import Schema

SCHEMA = Schema.parse("n bigint not null, s string")


def encoded(form: str, rows: list[dict[str, Any]]) -> bytes:
    if form == "object":
        return find_format("json").encode(rows[0])
    if form == "list":
        return b"[" + b",".join(find_format("json").encode(row) for row in rows) + b"]"
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    return find_format(form).encode(pa.Table.from_pylist(rows, schema))


texts = st.text(max_size=4).filter(lambda text: "\0" not in text)
row = st.fixed_dictionaries({"n": st.integers(-(2**62), 2**62), "s": texts})
records = st.tuples(
    st.sampled_from(["object", "list", "arrow", "dolphindb"]), st.lists(row, min_size=1, max_size=3)
)


@given(
    st.lists(records | st.sampled_from([b"", None, b"plain", b"{", b'[{"n": "x"}]']), max_size=8)
)
def test_every_record_is_read_by_its_format_and_the_order_is_kept(given: list[Any]) -> None:
    values, rows, origins, bad = [], [], [], []
    for index, each in enumerate(given):
        if not isinstance(each, tuple):
            values.append(each)
            bad.append(index)
            continue
        form, several = each
        several = several[:1] if form == "object" else several
        values.append(encoded(form, several))
        rows += several
        origins += [index] * len(several)
    decoded = AutoKernel(SCHEMA).decode(pa.array(values, pa.binary()))
    assert decoded.rows.to_pylist() == rows
    assert [failure.index for failure in decoded.failures] == bad
    found = decoded.origins.to_pylist() if decoded.origins is not None else list(range(len(values)))
    assert found == origins


def test_one_object_that_does_not_fit_fails_its_whole_list() -> None:
    values = [b'[{"n": 1}, {"n": "x"}, {"n": null}]', b'[{"n": 2}]', b"[1]", b"[", b"[]", b"[\xff]"]
    decoded = JsonListKernel(SCHEMA).decode(pa.array(values, pa.binary()))
    assert decoded.rows.column("n").to_pylist() == [2]
    assert decoded.origins is not None
    assert decoded.origins.to_pylist() == [1]
    assert [(failure.index, failure.error_type) for failure in decoded.failures] == [
        (0, "WrongType"), (2, "WrongType"), (3, "MalformedJson"), (5, "NotUtf8"),
    ]  # fmt: skip
    assert decoded.failures[0].message.startswith("[1]: n: found the text 'x'")
