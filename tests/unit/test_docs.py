"""The pages in docs/ say what the code says; their links lead somewhere; their definitions are valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from penstock.cli.main import EXIT_CODES, app
from penstock.flows import parse_flow
from penstock.pipeline import Pipeline
from penstock.pipeline.reading import parse_pipeline

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def script(name: str) -> ModuleType:
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_component_pages_are_those_that_the_models_give() -> None:
    expected = script("component-docs").pages()

    found = {page.name: page.read_text() for page in (ROOT / "docs/components").glob("*.md")}

    assert found == expected, "run: .venv/bin/python scripts/component-docs"


def test_the_tables_of_connectors_are_those_that_the_classes_give() -> None:
    made = script("connect-classes")

    written = (ROOT / "docs/connect-classes.md").read_text()
    assert written == made.page(), "run: .venv/bin/python scripts/connect-classes"
    assert made.block() in (ROOT / "docs/connect.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_definition_in_the_text_is_valid(page: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    for text in YAML.findall(page.read_text()):
        if text.startswith("name:"):
            parse = parse_flow if "\ntrigger:" in text else parse_pipeline
            assert parse(text, origin=shown(page)).name


def test_the_page_about_the_command_line_has_every_command_and_exit_code() -> None:
    page = (ROOT / "docs/command-line.md").read_text()

    assert [name for name in command_names() if f"`{name}" not in page] == []
    for code, meaning in re.findall(r"(\d+) ([^;.]+)", EXIT_CODES):
        assert f"| {code} | {meaning.strip()}" in page


def command_names() -> Iterator[str]:
    group: Any = get_command(app)
    for name, command in group.commands.items():
        real = command.real()
        inner = getattr(real, "commands", None)
        yield from (f"penstock {name} {each}" for each in inner or ())
        if not inner:
            yield f"penstock {name}"


def test_the_json_schema_for_editors_stands_on_its_own() -> None:
    schema = Pipeline.model_json_schema()

    refs = set(re.findall(r"'\$ref': '#/\$defs/(\w+)'", str(schema)))
    assert refs <= set(schema["$defs"])
    forms = [form.get("oneOf", [form])[0] for form in schema["properties"]["source"]["oneOf"]]
    (kafka,) = [form for form in forms if "kafka" in form["properties"]]
    start = kafka["properties"]["kafka"]["anyOf"][0]["properties"]["start"]["anyOf"]
    assert [list(form["properties"]) for form in start if "properties" in form] == [
        ["timestamp"],
        ["offsets"],
    ]
