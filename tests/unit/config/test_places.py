"""Where files live, and what is said where they cannot."""

from pathlib import Path

import pytest

from penstock.config import places
from penstock.errors import SetupError

DIRS = {
    "cache": places.cache_dir,
    "data": places.data_dir,
    "log": places.log_dir,
    "config": places.config_dir,
}


@pytest.mark.parametrize("kind", DIRS)
def test_everything_is_under_penstock_home_when_that_is_set(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert DIRS[kind]() == tmp_path / "home" / kind
    assert (tmp_path / "home" / kind).is_dir()


def test_a_relative_home_stays_the_same_place_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOME", "here")
    assert places.cache_dir() == tmp_path / "here" / "cache"


def test_without_home_the_platform_says_where(tmp_path, monkeypatch):
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_dir() == tmp_path / "xdg" / "penstock"


def test_the_four_places_are_different(monkeypatch):
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    assert len({places.place(kind) for kind in DIRS}) == 4


def test_asking_where_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert places.place("data") == tmp_path / "home" / "data"
    assert not (tmp_path / "home").exists()


def test_a_place_that_cannot_be_made_names_the_path_and_the_way_out(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("PENSTOCK_HOME", str(in_the_way))
    with pytest.raises(SetupError) as error:
        places.log_dir()
    assert str(Path(in_the_way) / "log") in str(error.value)
    assert "set PENSTOCK_HOME" in str(error.value)
