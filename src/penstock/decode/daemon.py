"""The process from which Spark forks its Python workers, made ready once instead of in every worker.

Spark puts jars and zips on the workers' path and has Python look all of them over before every task,
which takes longer than a small batch itself. Nothing is imported from them: PySpark is installed.
"""

from __future__ import annotations

import sys

import pyarrow.compute  # noqa: F401  what a worker needs is loaded here and shared by the fork
from pyspark import daemon, worker  # noqa: F401

import penstock.decode.kernels.json
import penstock.decode.kernels.parser  # noqa: F401


def forget_archives() -> None:
    """Take jars and zips off the path, and out of what Python remembers about it."""
    archives = [entry for entry in sys.path if entry.endswith((".jar", ".zip"))]
    for entry in archives:
        sys.path.remove(entry)
    for entry in list(sys.path_importer_cache):
        if entry.endswith((".jar", ".zip")) or ".zip/" in entry:
            del sys.path_importer_cache[entry]


if __name__ == "__main__":
    forget_archives()
    daemon.manager()  # type: ignore[no-untyped-call]
