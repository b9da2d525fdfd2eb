"""The examples of docs/pipeline-formats.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.config import Connection
from penstock.embedded import SchemaRegistry

PAGE = Path(__file__).parents[3] / "docs/pipeline-formats.md"
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_example_of_the_page_runs(
    connection: Connection, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    given = {"connection": connection, "registry_url": schema_registry.url, "folder": tmp_path}

    blocks = PYTHON.findall(PAGE.read_text())

    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), given)

    from penstock.engine import spark_session

    rows = spark_session().read.format("delta").load(f"{tmp_path}/trades").orderBy("symbol")
    assert [tuple(row) for row in rows.collect()] == [("A", 1.5, None), ("B", 2.0, 7)]
