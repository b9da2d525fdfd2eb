"""A pipeline that runs with canaries for secrets, and a step that fails with one: none gets out."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import yaml

from penstock.config import Connection
from penstock.testing import fill, read_all

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
MARK = "cnry"
STEP = f"""
def refuse(rows):
    if 2 in rows["n"].to_pylist():
        raise ValueError("cannot log in: password='{MARK}0001 X' at x://a:{MARK}0002@b\\x1b[2J")
    return rows
"""


def test_no_output_no_log_no_state_and_no_dead_letter_has_one(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    fill(connection, unique, ['{"n": 1}', '{"n": 2}', "not json", '{"n": 3}'])
    (tmp_path / "refusing.py").write_text(STEP)
    (tmp_path / "p.yaml").write_text(
        yaml.safe_dump(
            {
                "name": unique,
                "connection": {"bootstrap.servers": connection.brokers},
                "source": {"kafka": unique},
                "decode": {"json": {"schema": "n int"}},
                "steps": [{"python": "refusing:refuse"}],
                "sink": {
                    "database": {"url": "sqlite:///t.db", "password": "${env:DB}", "table": "t"}
                },
                "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "${env:KEY}"}},
            }
        )
    )
    places = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME")}
    done = subprocess.run(
        [PENSTOCK, "-vv", "run", "p.yaml", "--once"],
        env={**os.environ, **places, "DB": f"{MARK}0003X", "KEY": f"{MARK}0004X"},
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    written = {"stdout": done.stdout, "stderr": done.stderr}
    for place in places.values():
        files = (file for file in Path(place).rglob("*") if file.is_file())
        written |= {str(file): file.read_bytes() for file in files}
    letters = read_all(connection, f"{unique}.dead-letters")
    written |= {f"letter {n}": repr(letter.headers).encode() for n, letter in enumerate(letters)}

    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert len(letters) == 2
    assert len(written) > 6
    # Spark's Java process writes its own log: what a user's function raises is in it as it was raised.
    java = {name for name in written if "/spark-" in name}
    assert [
        name for name, data in written.items() if MARK.encode() in data and name not in java
    ] == []
    assert not [n for n in java if any(f"{MARK}000{i}X".encode() in written[n] for i in (3, 4))]
    assert b"\x1b[2J" not in done.stderr + done.stdout
    for place in places.values():
        assert stat.S_IMODE((Path(place) / "penstock").stat().st_mode) & 0o077 == 0
