"""Protobuf bodies decoded in bulk are what protobuf's own parser reads, and bad ones are the same.

Message types are made at random, and messages for them; then their bytes are shuffled and damaged.
PENSTOCK_FUZZ_PROTOBUF=1000000 damages that many bodies instead of 20,000.
"""

from __future__ import annotations

import os
import resource
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.mutations import BLOCK, inputs
from tests.fuzz.protobuf_messages import class_of, fill, later_version, random_file
from tests.fuzz.protobuf_rows import expected_or_none, same

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.protobuf import protobuf_scan
from penstock.decode.kernels.protobuf.protobuf_evolution import check_evolution
from penstock.decode.kernels.protobuf.protobuf_kernel import ProtobufBodies, protobuf_table_schema
from penstock.errors import ConfigError

DAMAGED = int(os.environ.get("PENSTOCK_FUZZ_PROTOBUF", "20000"))
TOKENS = [b"\x0a\x00", b"\x08\x80", b"\x0b\x0c", b"\xff\xff\xff\xff\x0f", b"\x12\x7f", b"\xc3"]
seeds = st.integers(0, 2**32)
many = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True)
def _small_batches_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_scan, "FEW", 0)


def check(message_class: Any, bodies: list[bytes], written: Any = None) -> int:
    """Compare the rows and failures of some bodies, and return how many are good."""
    wanted = message_class.DESCRIPTOR
    decode = ProtobufBodies(written or wanted, wanted)
    batch, failures = decode(pa.array(bodies, pa.binary()))
    batch.validate(full=True)
    assert batch.schema == arrow_schema(protobuf_table_schema(wanted))
    rows = [expected_or_none(message_class, body) for body in bodies]
    bad = [index for index, row in enumerate(rows) if row is None]
    assert [failure.index for failure in failures] == bad, _shown(bodies, failures, bad)
    good = [(body, row) for body, row in zip(bodies, rows, strict=True) if row is not None]
    assert batch.num_rows == len(good)
    for found, (body, row) in zip(batch.to_pylist(), good, strict=True):
        assert same(found, row), f"{body.hex()}: {found} is not {row}"
    return len(good)


def _shown(bodies: list[bytes], failures: Any, bad: list[int]) -> str:
    other = {failure.index for failure in failures} ^ set(bad)
    return "; ".join(f"{index in bad}: {bodies[index].hex()}" for index in sorted(other)[:3])


def bodies_of(random: Random, message_class: Any, count: int) -> list[bytes]:
    bodies = []
    for _ in range(count):
        message = message_class()
        fill(random, message)
        bodies.append(message.SerializeToString())
    return bodies


@many
@given(seeds)
def test_messages_become_the_rows_that_protobuf_reads(seed: int) -> None:
    random = Random(seed)
    message_class = class_of(random_file(random))
    assert check(message_class, bodies_of(random, message_class, 12)) == 12


@many
@given(seeds)
def test_fields_may_be_given_twice_and_in_any_order(seed: int) -> None:
    random = Random(seed)
    message_class = class_of(random_file(random))
    bodies = bodies_of(random, message_class, 12)
    check(message_class, [random.choice(bodies) + random.choice(bodies) for _ in bodies])


@many
@given(seeds)
def test_bodies_of_other_types_are_read_as_protobuf_reads_them(seed: int) -> None:
    random = Random(seed)
    other, message_class = class_of(random_file(random)), class_of(random_file(random))
    check(message_class, bodies_of(random, other, 12))


@many
@given(seeds)
def test_bodies_of_earlier_versions_are_read_with_the_later_schema_and_the_reverse(
    seed: int,
) -> None:
    random = Random(seed)
    file = random_file(random)
    before, after = class_of(file), class_of(later_version(random, file))
    assert check(after, bodies_of(random, before, 6), before.DESCRIPTOR) == 6
    try:
        check_evolution(after.DESCRIPTOR, before.DESCRIPTOR)
    except ConfigError:  # a number became wider
        return
    assert check(before, bodies_of(random, after, 6), after.DESCRIPTOR) == 6


def test_damaged_bodies_fail_where_protobuf_refuses_them_and_take_little_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    good = 0
    for block in range(DAMAGED // BLOCK):
        random = Random(block)
        message_class = class_of(random_file(random))
        start = bodies_of(random, message_class, 30)
        good += check(message_class, list(inputs("protobuf rows", block, start, TOKENS)))
    assert DAMAGED * 0.05 < good < DAMAGED * 0.95
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
