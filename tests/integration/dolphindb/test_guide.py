"""The example of docs/dolphindb.md runs and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Connection

PAGE = Path(__file__).parents[3] / "docs/dolphindb.md"


def test_the_example_of_the_page_prints_what_it_says(
    connection: Connection, unique: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with Admin(connection) as admin:
        admin.create_topic(f"{unique}-messages")
    names: dict[str, Any] = {"connection": connection}
    exec(compile(block.replace("migrated", unique), str(PAGE), "exec"), names)
    assert capsys.readouterr().out.splitlines() == re.findall(r"# -> (.*)", block)
    names["consumer"].close()
    names["producer"].close()
