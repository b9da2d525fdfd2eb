"""The examples on the page about formats run, and give what the page shows."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/formats.md"


def test_the_examples_of_the_page_give_what_it_shows() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)

    assert (found.failed, found.attempted > 20) == (0, True)


def test_the_page_has_every_type_of_dolphindb() -> None:
    from penstock.formats.dolphindb.dolphindb_types import TYPES

    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    # The table has "DECIMAL32, 64, 128".
    names = {name.strip() for row in rows for name in row.split("|")[1].split(",")}

    missing = {each.name for each in TYPES} - names
    assert missing == {"DECIMAL64", "DECIMAL128"}
    assert {"64", "128"} <= names
