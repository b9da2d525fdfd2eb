"""Folders of small files on this disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import TerminalError, TransientError
from penstock.pipeline.storage import Folder, for_spark


def session(master: str = "local[*,2]") -> Any:
    """As much of a session as places on this disk need."""
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(session(), str(tmp_path))


def test_what_is_written_is_read(folder: Folder) -> None:
    folder.write("a/b.json", "näh\n")
    assert folder.read("a/b.json") == "näh\n"
    assert folder.names("a") == ["b.json"]
    assert folder.exists("a")


@pytest.mark.parametrize("place", ["absent", "absent/deeper", "file/deeper"])
def test_what_is_not_there_is_nothing(folder: Folder, place: str) -> None:
    folder.write("file", "x")
    assert folder.read(place) is None
    assert folder.names(place) == []
    assert list(folder.files(place)) == []
    assert folder.sizes("*", place) == {}
    folder.remove(place)


def test_files_are_found_in_folders_and_hidden_ones_are_not(folder: Folder) -> None:
    for name in ("day=1/one", "day=1/two", "_penstock/table", ".one.crc", "_day=2/three"):
        folder.write(name, "12")
    assert sorted(folder.files()) == ["_day=2/three", "day=1/one", "day=1/two"]
    assert folder.sizes("*/t*") == {"day=1/two": 2, "_day=2/three": 2}
    assert folder.sizes("*", "day=1") == {"one": 2, "two": 2}


def test_a_file_that_is_replaced_or_moved_leaves_no_checksum_behind(
    folder: Folder, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        folder.write(name, name)
        (tmp_path / f".{name}.crc").write_bytes(b"of another file soon")
    folder.write("one", "other")
    folder.move("two", "below/two")
    folder.remove("three")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["below", "one", "two"]


def test_a_file_that_is_not_there_cannot_be_moved(folder: Folder) -> None:
    with pytest.raises(TerminalError, match=r"cannot rename .*/gone to here"):
        folder.move("gone", "here")


def test_a_folder_is_removed_with_all_that_is_in_it(folder: Folder) -> None:
    folder.write("a/b/c", "x")
    folder.remove("a")
    assert not folder.exists("a")


def test_links_are_followed_only_where_spark_runs_here(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    place = str(tmp_path / "link" / "table")
    assert for_spark(session(), place) == str(tmp_path / "real" / "table")
    assert for_spark(session("spark://spark:7077"), place) == place
    assert for_spark(session(), "s3a://bucket/table/") == "s3a://bucket/table"


def test_a_file_is_created_once_and_whole_whoever_tries(folder: Folder, tmp_path: Path) -> None:
    assert folder.create("a/1.json", '"first"')
    assert not folder.create("a/1.json", '"second"')
    assert folder.read("a/1.json") == '"first"'
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["1.json"]


def test_a_file_is_created_once_also_where_there_are_no_links(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", unsupported)
    assert folder.create("1.json", '"first"')
    assert not folder.create("1.json", '"second"')
    assert folder.read("1.json") == '"first"'


@pytest.mark.parametrize("act", ["write", "create"])
def test_a_full_disk_is_a_reason_to_wait_and_leaves_the_file_as_it_was(
    full_disk: Path, act: str
) -> None:
    folder = Folder(session(), str(full_disk))
    with pytest.raises(TransientError, match=f"no space left to write {full_disk}/plan"):
        getattr(folder, act)("plan", "1" * 5000)
    (full_disk / "spare").unlink()  # a file can be made now, and has no bytes
    with pytest.raises(TransientError, match="free some, and it is written then"):
        getattr(folder, act)("plan", "1" * 5000)
    assert folder.read("plan") is None
    assert not [path for path in full_disk.iterdir() if "draft" in path.name]

    (full_disk / "filler").unlink()
    getattr(folder, act)("plan", "1" * 5000)
    assert folder.read("plan") == "1" * 5000


def test_a_full_disk_is_a_reason_to_wait_with_a_rename(full_disk: Path) -> None:
    folder = Folder(session(), str(full_disk))
    with pytest.raises(TransientError, match="no space left"):
        folder.move("spare", "day=1/spare")
    assert folder.exists("spare")


def test_a_uri_of_this_disk_is_this_disk(tmp_path: Path) -> None:
    folder = Folder(session(), f"file://{tmp_path}/a b%20c")
    folder.write("x/y", "1")
    assert (tmp_path / "a b%20c" / "x" / "y").read_text() == "1"
    assert folder.below("x").read("y") == "1"
    assert folder.uri == f"file://{tmp_path}/a b%20c"
