"""The examples of docs/registry-formats.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.config import Connection
from penstock.embedded import SchemaRegistry

PAGE = Path(__file__).parents[3] / "docs/registry-formats.md"
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_example_of_the_page_runs(
    connection: Connection, schema_registry: SchemaRegistry
) -> None:
    given = {"connection": connection, "registry_url": schema_registry.url}

    blocks = PYTHON.findall(PAGE.read_text())

    assert len(blocks) == 12
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), given)
