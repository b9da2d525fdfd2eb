"""A folder of small files on whatever Spark can reach: this disk, HDFS, an object store."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class Folder:
    """Reads, writes and lists small text files under one path or URI."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._spark = spark
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._fs: Any = self._path(self.uri).getFileSystem(configuration)

    def names(self, below: str = "") -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        path = self._at(below)
        if not self._fs.exists(path):
            return []
        return [status.getPath().getName() for status in self._fs.listStatus(path)]

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        path = self._at(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a whole file, or nothing: under another name first, then renamed."""
        draft = self._at(f"{name}.draft")
        stream = self._fs.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._fs.delete(self._at(name), False)
        self._fs.rename(draft, self._at(name))

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(self._spark, f"{self.uri}/{name}")

    def _at(self, name: str) -> Any:
        return self._path(f"{self.uri}/{name}" if name else self.uri)
