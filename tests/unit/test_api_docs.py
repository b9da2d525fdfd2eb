"""The API reference says what the code says, and leaves no public name of the client out."""

from __future__ import annotations

import builtins
import re
import typing
from collections import abc
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import penstock
from penstock import errors, formats, kafka
from penstock.formats import registry

ROOT = Path(__file__).parents[2]
# Those of pipelines and of the embedded broker have pages of their own.
OTHERS = {
    "Delivery",
    "Broker", "Pipeline", "Progress", "Running", "SchemaRegistry", "State", "memory_table",
    "read_pipeline", "start", "PenstockError", "__version__",
}  # fmt: skip
SIGNATURE = re.compile(r"^(?:async def|def|class) .*?\)(?: -> .*)?$", re.MULTILINE | re.DOTALL)


def script() -> ModuleType:
    loader = SourceFileLoader("api_docs", str(ROOT / "scripts/api-docs"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


PAGE = (ROOT / "docs/api.md").read_text()
SCRIPT = script()


def test_the_page_is_the_one_that_the_docstrings_give() -> None:
    assert SCRIPT.page() == PAGE, "run: .venv/bin/python scripts/api-docs"


def test_every_public_name_of_the_client_has_its_place() -> None:
    names = {*penstock.__all__, *kafka.__all__, *registry.__all__, "find_format", "Format"}
    shown = re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)

    assert sorted(names - {*shown} - OTHERS) == []
    assert len(shown) == len(set(shown))


def test_whatever_is_shown_has_words_to_it() -> None:
    for found in SCRIPT.shown():
        assert found.__doc__, found
        for name, member in SCRIPT.members(found) if isinstance(found, type) else ():
            assert member.__doc__, f"{found.__name__}.{name} has no docstring"


def test_every_error_is_in_the_table() -> None:
    kinds = [kind.__name__ for kind in SCRIPT.error_kinds()]
    assert len(kinds) > 15
    assert "PenstockError" in kinds
    assert [name for name in kinds if f"| `{name}` |" not in PAGE] == []
    assert str(errors.__doc__).count("exit") - 1 == len(kinds)


def test_every_format_by_name_is_on_the_page_about_formats() -> None:
    page = (ROOT / "docs/formats.md").read_text()
    assert [name for name in formats.FORMATS if f"'{name}'" not in page] == []


def test_a_name_in_a_signature_is_explained_on_the_page() -> None:
    used = {
        name
        for text in re.findall(r"```python\n(.*?)\n```", PAGE, re.DOTALL)
        for signature in SIGNATURE.findall(text)
        for name in re.findall(r"(?<![\w'.])[A-Z]\w+", signature)
    }
    known = {*dir(builtins), *dir(typing), *dir(abc)}
    shown = {*re.findall(r"^### (\w+)$", PAGE, re.MULTILINE), *SCRIPT.SHORT}

    assert sorted(used - known - shown - {kind.__name__ for kind in SCRIPT.error_kinds()}) == []
