"""Workers must not look through jars before every task."""

from __future__ import annotations

import subprocess
import sys


def test_jars_and_zips_leave_the_path_of_a_worker() -> None:
    code = """
import sys
from penstock.decode import daemon
sys.path += ["/spark/core.jar", "/spark/pyspark.zip", "/home/me/project"]
sys.path_importer_cache["/spark/core.jar"] = None
daemon.forget_archives()
print([p for p in sys.path if p.startswith(("/spark", "/home/me"))])
print([p for p in sys.path_importer_cache if p.startswith("/spark")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["['/home/me/project']", "[]"]
