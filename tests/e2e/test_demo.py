"""`penstock demo`, as a newcomer runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq


def test_the_demo_streams_trades_into_a_table_and_shows_a_lag_of_zero(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("penstock")),
            "demo",
            "--seconds",
            "1",
            "--rate",
            "500",
        ],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | {"XDG_DATA_HOME": str(tmp_path)},
    )

    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "penstock" / "demo" / "table")
    assert f"{table.num_rows:,} rows; the first of them" in done.stderr
    assert set(table.column("symbol").to_pylist()) <= {"AAPL", "MSFT", "NVDA", "TSLA", "AMZN"}
    assert "the consumer group 'demo' as Kafka sees it: lag 0" in done.stderr
    assert re.search(r"^trades +0 +\d+ +\d+ +0 *$", done.stdout, re.M)
    assert "What to try next" in done.stderr
    assert "Traceback" not in done.stderr
