"""The examples of docs/kafka-client.md run in their order, and print what the page says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from penstock import Connection

PAGE = Path(__file__).parents[3] / "docs/kafka-client.md"
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
SAID = re.compile(r"# -> (.*)")


def test_every_example_of_the_page_prints_what_it_says(connection: Connection, unique: str) -> None:
    # Topics, groups and transactional ids of the page begin with a word that no other test uses.
    page = PAGE.read_text().replace("guide-", f"{unique}-")
    names: dict[str, Any] = {"connection": connection}
    found = list(PYTHON.finditer(page))

    assert len(found) == 26
    for match in found:
        # As many lines before it as on the page: an error then names the right one.
        block = "\n" * page.count("\n", 0, match.start(1)) + match[1]
        assert printed(block, names) == SAID.findall(block)


def printed(block: str, names: dict[str, Any]) -> list[str]:
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(block, str(PAGE), "exec"), names)
    return out.getvalue().splitlines()


def test_whatever_the_page_prints_is_said_beside_it() -> None:
    for block in PYTHON.findall(PAGE.read_text()):
        assert ("print(" in block) == bool(SAID.search(block))
