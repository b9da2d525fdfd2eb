"""The process from which Spark forks its Python workers, made ready once instead of in every worker.

Spark puts jars and zips on the workers' path and has Python look all of them over before every task,
which takes longer than a small batch itself. Nothing is imported from them: PySpark is installed.
"""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute  # what a worker needs is loaded here and shared by the fork
from pyspark import daemon, worker  # noqa: F401

import penstock.decode.kernels.json
import penstock.decode.kernels.parser  # noqa: F401


def forget_archives() -> None:
    """Take jars and zips off the path, and out of what Python remembers about it."""
    for entry in [entry for entry in sys.path if entry.endswith((".jar", ".zip"))]:
        sys.path.remove(entry)
    for entry, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):  # also of folders inside: spark-core.jar/org
            del sys.path_importer_cache[entry]


if __name__ == "__main__":
    pa.array([0])  # Arrow looks for pandas at the first array
    forget_archives()
    gc.freeze()  # a worker collects garbage after every task: not among what is loaded here
    daemon.manager()  # type: ignore[no-untyped-call]
