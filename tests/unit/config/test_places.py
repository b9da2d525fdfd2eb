"""Where files live, and what is said where they cannot."""

from pathlib import Path

import pytest

from penstock.config import directories
from penstock.errors import SetupError

DIRS = {
    "cache": directories.cache_dir,
    "data": directories.data_dir,
    "log": directories.log_dir,
    "config": directories.config_dir,
}


@pytest.mark.parametrize("kind", DIRS)
def test_everything_is_under_penstock_home_when_that_is_set(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert DIRS[kind]() == tmp_path / "home" / kind
    assert (tmp_path / "home" / kind).is_dir()


def test_a_relative_home_stays_the_same_place_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOME", "here")
    assert directories.cache_dir() == tmp_path / "here" / "cache"


def test_without_home_the_platform_says_where(tmp_path, monkeypatch):
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert directories.cache_dir() == tmp_path / "xdg" / "penstock"


def test_the_four_places_are_different(monkeypatch):
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    assert len({directories.place(kind) for kind in DIRS}) == 4


def test_asking_where_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert directories.place("data") == tmp_path / "home" / "data"
    assert not (tmp_path / "home").exists()


def test_a_place_that_cannot_be_made_names_the_path_and_the_way_out(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("PENSTOCK_HOME", str(in_the_way))
    with pytest.raises(SetupError) as error:
        directories.log_dir()
    assert str(Path(in_the_way) / "log") in str(error.value)
    assert "set PENSTOCK_HOME" in str(error.value)


def _mode(path):
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.parametrize("kind", ["data", "log", "config"])
def test_what_may_hold_secrets_is_for_its_owner_alone(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert _mode(DIRS[kind]()) == "0o700"
    assert _mode(tmp_path / "home") == "0o700"


@pytest.mark.parametrize("kind", ["data", "log", "config"])
def test_a_folder_of_ours_that_is_open_to_others_is_closed(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / kind).mkdir(parents=True, mode=0o755)
    assert _mode(DIRS[kind]()) == "0o700"
