"""The process from which Spark forks its Python workers, prepared once instead of in every worker.

Spark puts jars and zips on the workers' path and makes Python scan all of them before every task,
which takes longer than a small batch itself. Nothing is imported from them: PySpark is installed.
"""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute  # loaded here and shared by the forked workers
from pyspark import daemon, worker  # noqa: F401

import penstock.decode.kernels.json.json_kernel
import penstock.decode.kernels.parser  # noqa: F401


def forget_archives() -> None:
    """Remove jars and zips from the path, and from Python's importer cache."""
    for entry in [entry for entry in sys.path if entry.endswith((".jar", ".zip"))]:
        sys.path.remove(entry)
    for entry, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):  # also of folders inside: spark-core.jar/org
            del sys.path_importer_cache[entry]


if __name__ == "__main__":
    pa.array([0])  # Arrow looks for pandas at the first array
    forget_archives()
    gc.freeze()  # a worker collects garbage after every task: not among the objects loaded here
    daemon.manager()  # type: ignore[no-untyped-call]
