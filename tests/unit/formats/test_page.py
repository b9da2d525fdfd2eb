"""The examples on the page about formats run, and give what the page shows."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/formats.md"


def test_the_examples_of_the_page_give_what_it_shows() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)

    assert (found.failed, found.attempted > 20) == (0, True)


def test_the_page_has_the_table_of_the_module() -> None:
    from penstock.formats import dolphindb

    names = [
        line.split("|")[1].strip() for line in str(dolphindb.__doc__).splitlines() if "|" in line
    ]
    page = PAGE.read_text()

    assert len(names) > 20
    assert [name for name in names if f"| {name} |" not in page and name != "---"] == []
