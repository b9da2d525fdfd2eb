"""Every function of the clients that users come from has a call here, and a test that runs it."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock
from penstock import Connection, kafka

ROOT = Path(__file__).parents[2]
UNREACHABLE = Connection(brokers="127.0.0.1:1")
# How a method with underscores is called.
SPOKEN = {"__len__": "len", "__bool__": "bool"}


def script() -> ModuleType:
    loader = SourceFileLoader("function_table", str(ROOT / "scripts/function-table"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


SYSTEMS = script().systems()
ROWS = [
    pytest.param(row, id=f"{system['system'].replace(' ', '-')}-{row['name']}")
    for system in SYSTEMS
    for row in system["functions"]
]


def test_the_page_is_the_one_that_the_list_gives() -> None:
    page = (ROOT / "docs/functions.md").read_text()
    assert page == script().page(), "run: .venv/bin/python scripts/function-table"


def test_no_function_is_missing() -> None:
    names = {each["system"]: [row["name"] for row in each["functions"]] for each in SYSTEMS}
    assert {system: len(set(found)) for system, found in names.items()} == {
        "DolphinDB Kafka plugin, current": 19,
        # producer 5, consumer 25, queues 10, events 8, global settings 4
        "DolphinDB Kafka plugin, 1.30": 52,
        "confluent-kafka-go consumer": 24,
    }
    assert sum(map(len, names.values())) == 95


@pytest.mark.parametrize("row", ROWS)
def test_a_call_exists_and_is_the_one_that_the_row_shows(row: dict[str, Any]) -> None:
    for name in row["uses"]:
        assert exists(name), f"{name} is not there"
        last = name.rpartition(".")[2]
        assert SPOKEN.get(last, last) in re.findall(r"\w+", row["call"])


@pytest.mark.parametrize("row", ROWS)
def test_the_linked_test_exists_and_runs_the_call(row: dict[str, Any]) -> None:
    file, _, name = row["test"].partition("#")
    functions = functions_of(ROOT / file)
    assert name in functions, f"{file} has no test {name}"
    used = names_used(name, functions)
    for wanted in row["uses"]:
        last = wanted.rpartition(".")[2]
        # Tests that run for both twins make their clients with `twins.producer`, `twins.consumer`.
        assert SPOKEN.get(last, last).lower() in used, f"{row['test']} does not use {wanted}"


@cache
def objects() -> dict[str, Any]:
    """Return one object of each class, not connected, with the attributes of the instance."""
    consumer = kafka.Consumer(UNREACHABLE, "g")
    return {
        "Admin": kafka.Admin,
        "Consumer": consumer,
        "Event": kafka.Event("None"),
        "Producer": kafka.Producer(UNREACHABLE),
        "Queue": consumer.queues.main,
        "cluster_metadata": kafka.cluster_metadata,
    }


def exists(name: str) -> bool:
    first, *rest = name.split(".")
    found = objects()[first] if first in objects() else getattr(penstock, first)
    for part in rest[:-1]:
        found = getattr(found, part)
    return not rest or hasattr(type(found), rest[-1]) or hasattr(found, rest[-1])


@cache
def functions_of(file: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(file.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def names_used(name: str, functions: dict[str, ast.FunctionDef]) -> set[str]:
    """What a test calls or asks for, itself or through the functions and fixtures of its file."""
    used, waiting, seen = set[str](), [name], set[str]()
    while waiting:
        seen.add(current := waiting.pop())
        nodes = list(ast.walk(functions[current]))
        used |= {node.attr.lower() for node in nodes if isinstance(node, ast.Attribute)}
        used |= {
            node.func.id.lower()
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        mentioned = {node.id for node in nodes if isinstance(node, ast.Name)}
        mentioned |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        waiting += [other for other in mentioned if other in functions and other not in seen]
    return used
