"""Offsets of Kafka's file source as positions of the file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connector_class import Offsets
from penstock.connect.connectors import CATALOG
from penstock.errors import ConfigError
from penstock.imports.files.watched_file import listed

DATA = "one\ntwö\nthree\n".encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_bytes(DATA)
    return path


def taken(file: Path, place: dict[str, Any], offset: dict[str, Any] | None) -> Offsets:
    given = {"connector.class": "FileStreamSource", "file": str(file), "topic": "t", "name": "n"}
    config = CATALOG.config(given)
    found = CATALOG.find("FileStreamSource")()
    made = found.take_over(config, [(place, offset)])
    if offset is not None:  # what was set is shown again in the same form
        assert [each for each, _ in found.shown_offsets(config, made)] == [place]
    return made


@pytest.mark.parametrize(
    ("position", "at"),
    [
        (0, 0),
        (4, 4),
        (len(DATA), len(DATA)),
        # Characters, which Connect counts: it would go on within "three", and so the line comes again.
        (len(DATA) - 1, 9),
        (6, 4),
    ],
)
def test_an_offset_is_the_beginning_of_a_line(file: Path, position: int, at: int) -> None:
    ((place, found),) = taken(file, {"filename": str(file)}, {"position": position})
    assert place == {"inode": file.stat().st_ino}
    assert found is not None and found["at"] == at
    # The import goes on there: it knows the file by what was read of it.
    (own,) = listed(str(file.parent), "*", recursive=False)
    opened = own.open()
    assert opened is not None
    with opened:
        assert opened.start(found, "lines", grows=True) == at


def test_positions_of_this_form_and_removals_are_taken(file: Path) -> None:
    inode = file.stat().st_ino
    assert taken(file, {"filename": str(file)}, None) == [({"inode": inode}, None)]
    own: Offsets = [({"inode": inode + 1}, {"at": 3})]
    assert taken(file, *own[0]) == own


@pytest.mark.parametrize(
    ("place", "offset", "message"),
    [
        ({"filename": "/other"}, {"position": 1}, "is of the file '/other'; this connector reads"),
        ({}, {"position": 99}, "is 99, and the file has 15 bytes"),
        ({}, {"position": "4"}, "allowed: {'position': BYTES}"),
        ({}, {"at": 4}, "allowed: {'position': BYTES}"),
    ],
)
def test_other_offsets_are_refused(
    file: Path, place: dict[str, Any], offset: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        taken(file, {"filename": str(file), **place}, offset)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.txt"
    with pytest.raises(ConfigError, match="does not exist on this machine"):
        taken(missing, {"filename": str(missing)}, {"position": 1})


def test_offsets_of_files_that_a_connector_has_read_before_do_not_count(file: Path) -> None:
    given = {"connector.class": "FileStreamSource", "file": str(file), "topic": "t", "name": "n"}
    config, found = CATALOG.config(given), CATALOG.find("FileStreamSource")()
    former: Offsets = [({"filename": "/former.txt"}, {"position": 999})]
    own: Offsets = [({"filename": str(file)}, {"position": 4})]
    assert found.take_over(config, [*former, *own]) == found.take_over(config, own)
    with pytest.raises(ConfigError, match=r"'/former.txt'; this connector reads"):
        found.take_over(config, former)
