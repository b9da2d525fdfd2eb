"""Workers must not look through jars before every task."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile


def test_jars_and_zips_leave_the_path_of_a_worker(tmp_path: Path) -> None:
    for name in ("core.jar", "pyspark.zip"):
        with ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("inside/__init__.py", "")
            archive.writestr("inside/nothing.py", "")
    (tmp_path / "project").mkdir()
    code = f"""
import sys
from pathlib import Path
from penstock.decode import daemon
here = Path({str(tmp_path)!r})
sys.path += [str(here / name) for name in ("core.jar", "pyspark.zip", "project")]
import inside.nothing
before = [p for p in sys.path_importer_cache if p.startswith(str(here))]
assert str(here / "core.jar" / "inside") in before, before
daemon.forget_archives()
print([Path(p).name for p in sys.path if p.startswith(str(here))])
print([Path(p).name for p in sys.path_importer_cache if p.startswith(str(here))])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["['project']", "[]"]
