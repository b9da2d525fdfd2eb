"""No function and no error of the DolphinDB plugin's documentation is forgotten."""

from __future__ import annotations

import ast
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.compat import dolphindb

ROOT = Path(__file__).parents[2]
LIST = json.loads(Path(__file__).with_name("dolphindb_functions.json").read_text())
FUNCTIONS = [*LIST["functions"], *LIST["tables"]]

BUILT = [pytest.param(row, id=row["name"]) for row in FUNCTIONS]

ERRORS = [pytest.param(row, id=row["id"]) for row in LIST["errors"]]


def test_the_list_has_every_function_of_both_versions() -> None:
    systems = yaml.safe_load((ROOT / "docs/functions.yaml").read_text())
    shown = {each["system"]: [row["name"] for row in each["functions"]] for each in systems}
    for version in ("current", "1.30"):
        listed = [row["name"] for row in LIST["functions"] if version in row["documents"]]
        assert sorted(listed) == sorted(shown[f"DolphinDB Kafka plugin, {version}"])


def test_the_module_has_these_functions_and_no_others() -> None:
    listed = {row["name"] for row in FUNCTIONS}
    assert set(dolphindb.__all__) == listed


@pytest.mark.parametrize("row", BUILT)
def test_a_function_takes_the_documented_arguments(row: dict[str, Any]) -> None:
    given = inspect.signature(getattr(dolphindb, row["name"])).parameters.values()
    found = [
        {"name": str(each).partition(":")[0]}
        if each.default is each.empty
        else {"name": each.name, "default": each.default}
        for each in given
    ]
    assert found == row["arguments"]


@pytest.mark.parametrize("row", BUILT)
def test_a_function_has_a_word_about_it_and_a_test_of_what_it_does(row: dict[str, Any]) -> None:
    assert getattr(dolphindb, row["name"]).__doc__
    assert row["name"] in marked_with("documented")


@pytest.mark.parametrize("error", ERRORS)
def test_a_documented_error_has_a_test(error: dict[str, Any]) -> None:
    assert error["id"] in marked_with("documented_error")


def test_no_test_is_marked_with_a_name_that_is_not_in_the_list() -> None:
    assert marked_with("documented") <= {row["name"] for row in FUNCTIONS}
    assert marked_with("documented_error") <= {row["id"] for row in LIST["errors"]}


@pytest.mark.parametrize("row", BUILT)
def test_the_guide_has_a_row_for_the_function(row: dict[str, Any]) -> None:
    page = (ROOT / "docs/dolphindb.md").read_text()
    assert re.search(rf"^\| `{row['name']}\(", page, re.MULTILINE)


@cache
def marked_with(mark: str) -> frozenset[str]:
    """The names that tests are marked with, read from their files: nothing of them is imported here."""
    files = (ROOT / "tests").rglob("test_*.py")
    trees = [ast.parse(file.read_text()) for file in files if mark in file.read_text()]
    calls = [
        decorator
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
    ]
    marked = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == mark]
    return frozenset(str(a.value) for c in marked for a in c.args if isinstance(a, ast.Constant))
