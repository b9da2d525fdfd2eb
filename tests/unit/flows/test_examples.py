"""The examples of flows are valid, and their own tests pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.flows.definition.reading import read_flow
from penstock.flows.testing import run_tests

FILES = sorted((Path(__file__).parents[3] / "examples/flows").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_passes_its_own_tests(file: Path) -> None:
    results = run_tests(read_flow(file))

    assert results
    assert [result.differences for result in results] == [[] for _ in results]
