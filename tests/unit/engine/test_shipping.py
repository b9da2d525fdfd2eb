"""What is sent to a cluster: the user's modules with all that they import, in an archive Python reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.modules import modules_needed
from penstock.engine.shipping import packed
from penstock.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: Any) -> Path:
    """A folder with a module that imports in every way."""
    files = {
        "ship_parser.py": "import json, pyarrow\nimport ship_direct\ndef f():\n import ship_late.deep",
        "ship_direct.py": "from ship_space.inner import name\n",
        "ship_late/__init__.py": "",
        "ship_late/deep.py": "from . import other\n",
        "ship_late/other.py": "",
        "ship_late/columns.json": "{}",
        "ship_late/__pycache__/deep.pyc": "old",
        "ship_space/inner.py": "name = 'found'\n",
        "ship_unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_everything_that_is_imported_is_needed_and_nothing_that_is_installed(home: Path) -> None:
    found = modules_needed(["ship_parser"])

    assert found == {
        "ship_parser": [home / "ship_parser.py"],
        "ship_direct": [home / "ship_direct.py"],
        "ship_late": [home / "ship_late"],
        "ship_space": [home / "ship_space"],
    }


@pytest.mark.parametrize(
    "name", ["json", "pyarrow.compute", "penstock.decode", "__main__", "no_such"]
)
def test_what_every_machine_has_or_nobody_has_is_not_sent(name: str) -> None:
    assert modules_needed([name]) == {}


def test_python_imports_from_the_archive_alone(home: Path, tmp_path: Path) -> None:
    archive = packed("modules", modules_needed(["ship_parser"]))

    code = "import ship_direct, ship_late.deep; print(ship_direct.name, ship_direct.__file__)"
    run = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    told = subprocess.run(run, capture_output=True, text=True, check=True, cwd="/").stdout
    assert told.split() == ["found", f"{archive}/ship_direct.py"]


def test_data_of_a_package_is_packed_and_what_python_made_is_not(home: Path) -> None:
    names = zipfile.ZipFile(packed("modules", modules_needed(["ship_late"]))).namelist()

    assert "ship_late/columns.json" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_same_files_give_the_same_archive_and_others_another(home: Path) -> None:
    first = packed("modules", modules_needed(["ship_direct"]))
    assert packed("modules", modules_needed(["ship_direct"])) == first

    (home / "ship_direct.py").write_text("from ship_space.inner import name  # changed\n")
    assert packed("modules", modules_needed(["ship_direct"])) != first


def test_a_package_full_of_data_is_refused_with_its_size(home: Path) -> None:
    with (home / "ship_late" / "data.bin").open("wb") as file:
        file.truncate(120 * 2**20)

    with pytest.raises(ConfigError, match="ship_late have 120 MB, and at most 100 MB"):
        packed("modules", modules_needed(["ship_late"]))
