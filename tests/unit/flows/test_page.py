"""docs/flows.md: its tables are those of the code, its definition passes its own tests."""

from __future__ import annotations

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from penstock.flows import Flow, parse_flow, read_flow
from penstock.flows.definition.model import options_of
from penstock.flows.testing import run_tests

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/flows.md").read_text()


def test_the_tables_are_those_of_the_code() -> None:
    loader = SourceFileLoader("flow_tables", str(ROOT / "scripts/flow-tables"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)

    assert module.page() == PAGE, "run: .venv/bin/python scripts/flow-tables"


def test_the_definition_in_the_page_passes_its_tests() -> None:
    texts = re.findall(r"```yaml\n(name:.*?)```", PAGE, re.DOTALL)

    results = [result for text in texts for result in run_tests(parse_flow(text))]

    assert results
    assert [result.differences for result in results] == [[]] * len(results)


@pytest.mark.parametrize("file", sorted((ROOT / "examples/flows").iterdir()), ids=lambda f: f.name)
def test_an_example_passes_its_tests_and_has_no_option_without_an_effect(file: Path) -> None:
    flow = read_flow(file)

    assert [result.differences for result in run_tests(flow)] == [[]]
    assert flow.notes() == []
    assert f"]({file.relative_to(ROOT / 'examples')})" in (ROOT / "examples/README.md").read_text()


def test_the_python_in_the_page_runs() -> None:
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(text, "docs/flows.md", "exec"), {"__name__": "page"})


def test_every_option_has_a_description() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]*\| ([^|]*) \|$", PAGE, re.MULTILINE)

    assert [name for name, description in rows if not description.strip()] == []
    assert "trigger" in options_of(Flow)
