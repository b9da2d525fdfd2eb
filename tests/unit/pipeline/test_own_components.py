"""Components of other packages: found by their entry points, small, and as CONTRIBUTING shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.own_package import PACKAGE, installed

from penstock.errors import DefinitionError
from penstock.pipeline import Component, Pipeline, Sink, registry

MODULES = sorted((PACKAGE / "acme_components").glob("*_*.py"))


def test_components_of_another_package_are_read_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "name": "p",
        "source": {"kafka": "people"},
        "decode": {"fields": "id, name"},
        "steps": [{"mask": {"columns": "name", "keep": 1}}],
        "sink": {"lines": "people.json"},
    }
    with installed(tmp_path, monkeypatch):
        pipeline = Pipeline(**options)
        assert pipeline.model_dump(mode="json", exclude_unset=True)["sink"] == {
            "lines": {"path": "people.json"}
        }
        with pytest.raises(DefinitionError, match=r"the sink 'lines' cannot promise exactly-once"):
            Pipeline(**options, delivery="exactly-once")
    with pytest.raises(DefinitionError, match="there is no sink 'lines'"):
        Pipeline(**options)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_a_component_is_one_short_file(module: Path) -> None:
    # An import has two sides: what the driver asks, and what a task reads.
    limit = 60 if module.stem.endswith("_source") else 40
    assert len(module.read_text().splitlines()) <= limit


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("CONTRIBUTING.md", "lines_sink"),
        ("CONTRIBUTING.md", "mask_step"),
        ("docs/connect-development.md", "lines_connector"),
        ("docs/connect-development.md", "journal_connector"),
    ],
)
def test_pages_show_the_examples_as_they_are(page: str, name: str) -> None:
    shown = (Path(__file__).parents[3] / page).read_text()
    code = (PACKAGE / "acme_components" / f"{name}.py").read_text().strip()
    assert f"```python\n{code}\n```" in shown


@pytest.mark.parametrize("kind", ["source", "decode", "step", "sink"])
def test_a_component_is_a_value_without_private_state(kind: str) -> None:
    for name in registry.names(kind):
        cls: type[Component] = registry.component(kind, name)
        assert cls.__private_attributes__ == {}, name
        assert cls.model_config["frozen"], name


def test_a_sink_does_not_write_its_writer_does() -> None:
    for name in registry.names("sink"):
        cls = registry.component("sink", name)
        assert issubclass(cls, Sink)
        assert not {"write", "prepare", "claim", "last_write", "maintain"} & set(dir(cls)), name
