"""What is sent to a cluster: the user's modules with all that they import, in an archive Python reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.modules import modules_needed
from penstock.engine.shipping import _penstock, packed
from penstock.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: Any) -> Path:
    """A folder with a module that imports in every way."""
    files = {
        "ship_parser.py": "import json, pyarrow\nimport ship_direct\ndef f():\n import ship_late.deep",
        "ship_direct.py": "from ship_space.inner import name\n",
        "ship_late/__init__.py": "",
        "ship_late/deep.py": "from . import other\nCOLUMNS = 'columns.json'\nTABLES = 'tables'\n",
        "ship_late/other.py": "from .sub.inner import x\nNAMED = ['.env', 'app.key', 'cert.pem']\n",
        "ship_late/sub/__init__.py": "",
        "ship_late/sub/inner.py": "import importlib\nx = importlib.import_module('ship_late.named')\n",
        "ship_late/named.py": "",
        "ship_late/unused.py": "PASSWORD = 'canary'\n",
        "ship_late/columns.json": "{}",
        "ship_late/customers.csv": "canary",
        "ship_late/tables/a.csv": "1",
        "ship_late/.env": "canary",
        "ship_late/app.key": "canary",
        "ship_late/cert.pem": "-----BEGIN PRIVATE KEY-----canary",
        "ship_late/.git/config": "canary",
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

    assert sorted(found) == [
        "ship_direct.py",
        "ship_late/__init__.py",
        "ship_late/columns.json",
        "ship_late/deep.py",
        "ship_late/named.py",
        "ship_late/other.py",
        "ship_late/sub/__init__.py",
        "ship_late/sub/inner.py",
        "ship_late/tables/a.csv",
        "ship_parser.py",
        "ship_space/inner.py",
    ]
    assert found["ship_late/deep.py"] == home / "ship_late" / "deep.py"


@pytest.mark.parametrize(
    "name", ["json", "pyarrow.compute", "penstock.decode", "__main__", "no_such"]
)
def test_modules_that_every_machine_or_no_machine_has_are_not_sent(name: str) -> None:
    assert modules_needed([name]) == {}


def test_python_imports_from_the_archive_alone(home: Path, tmp_path: Path) -> None:
    archive = packed("modules", modules_needed(["ship_parser"]))

    code = "import ship_direct, ship_late.deep; print(ship_direct.name, ship_direct.__file__)"
    run = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    reported = subprocess.run(run, capture_output=True, text=True, check=True, cwd="/").stdout
    assert reported.split() == ["found", f"{archive}/ship_direct.py"]


def test_no_file_goes_that_is_not_needed_and_no_key_even_if_it_is_named(home: Path) -> None:
    """Anyone who may read the cluster's files may read the archive."""
    archive = zipfile.ZipFile(packed("modules", modules_needed(["ship_parser"])))

    contents = b"".join(archive.read(name) for name in archive.namelist())
    assert b"canary" not in contents
    assert "ship_late/columns.json" in archive.namelist()


def test_penstock_itself_is_sent_without_anything_hidden() -> None:
    names = zipfile.ZipFile(_penstock()).namelist()
    assert {"penstock/__init__.py", "penstock/embedded/jars.lock"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "/." in name]


def test_the_same_files_give_the_same_archive_and_others_another(home: Path) -> None:
    first = packed("modules", modules_needed(["ship_direct"]))
    assert packed("modules", modules_needed(["ship_direct"])) == first

    (home / "ship_direct.py").write_text("from ship_space.inner import name  # changed\n")
    assert packed("modules", modules_needed(["ship_direct"])) != first


def test_a_package_full_of_data_is_refused_with_its_size(home: Path) -> None:
    with (home / "ship_late" / "columns.json").open("wb") as file:
        file.truncate(120 * 2**20)

    with pytest.raises(ConfigError, match="ship_late have 120 MB, and at most 100 MB"):
        packed("modules", modules_needed(["ship_late.deep"]))


def test_every_module_of_penstock_is_sent_also_one_that_names_what_a_key_looks_like() -> None:
    package = Path(sys.modules["penstock"].__file__ or "").parent
    own = {file.relative_to(package.parent).as_posix() for file in package.rglob("*.py")}
    with zipfile.ZipFile(_penstock()) as archive:
        assert own <= set(archive.namelist())
