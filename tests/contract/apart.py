"""Functions that run in a process of their own: a new Python, as a fork copies locks of other threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark import cloudpickle

_PROGRAM = "import sys; from pyspark import cloudpickle; cloudpickle.load(sys.stdin.buffer)()"
_ROOT = Path(__file__).parents[2]


def run_apart(work: Callable[[], object]) -> subprocess.Popen[bytes]:
    """Start a function in another process; its exit code is 0 when the function returns."""
    paths = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert process.stdin
    process.stdin.write(cloudpickle.dumps(work))
    process.stdin.close()
    return process
