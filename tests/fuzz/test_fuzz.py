"""Hostile bytes are a value or the decoder's own error: some of what `python -m tests.fuzz` tries."""

from __future__ import annotations

import os

import pytest
from tests.fuzz.decoders import NAMES
from tests.fuzz.running import run

from penstock.formats import FORMATS

# Blocks of 1,000 inputs: 1000 of them are a million for each decoder (with --timeout 0).
BLOCKS = int(os.environ.get("PENSTOCK_FUZZ_BLOCKS", "10"))
MOST = 300 * 2**20


def test_every_format_is_fuzzed() -> None:
    assert set(FORMATS) < set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_bytes_are_refused_with_one_error_and_little_memory(name: str) -> None:
    # The blocks differ from those of a long run's beginning.
    outcome = run(name, 1_000_000, BLOCKS, patience=250)
    assert outcome.others == []
    assert outcome.decoded + outcome.refused == outcome.inputs == BLOCKS * 1000
    assert outcome.grown < MOST
