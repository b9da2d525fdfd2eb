"""A server of the test's own, and commands that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.services.penstock_server import PenstockServer

from penstock.cli import main
from penstock.control.store import ControlStore


@dataclass
class Ended:
    """The exit code of a command, and what it printed."""

    code: object
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty store and its keys."""
    folder = tmp_path_factory.mktemp("control")
    ControlStore.at(folder / "control.sqlite", folder / "keys").close()
    return folder


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and an empty working folder, without variables of a server."""
    home = tmp_path / "home"
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    for name in ("PENSTOCK_SERVER", "PENSTOCK_TOKEN", "PENSTOCK_SERVER_CA", "PENSTOCK_STORE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return home


@pytest.fixture
def command(own_home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Runs a command line in this process."""

    def run(*args: object) -> Ended:
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        shown = capfdbinary.readouterr()
        return Ended(end.value.code or 0, shown.out.decode(), shown.err.decode())

    return run


@pytest.fixture
def server(
    tmp_path: Path, empty_store: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PenstockServer]:
    """A server without login, which commands use."""
    folder = tmp_path / "store"
    folder.mkdir()
    with PenstockServer(folder, empty_store) as started:
        monkeypatch.setenv("PENSTOCK_SERVER", started.url)
        yield started
