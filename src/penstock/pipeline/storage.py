"""A folder of small files on whatever Spark can reach: this disk, HDFS, an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import TerminalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_uri(place: str) -> bool:
    """Whether a place is not on this disk but behind a URI.

    >>> is_uri("s3a://bucket/table"), is_uri("tables/trades")
    (True, False)
    """
    return "://" in place


def absolute(place: str) -> str:
    """A place as Java must hear it: it keeps the working directory it started in, ours may be another."""
    return place.rstrip("/") if is_uri(place) else str(Path(place).absolute())


def unglobbed(place: str) -> str:
    """A place in which no sign stands for others, where a pattern is read.

    >>> print(unglobbed("/tables/[new]"))
    /tables/\\[new\\]
    """
    return re.sub(r"([\\{}\[\]*?^])", r"\\\1", place)


def _is_hidden(name: str) -> bool:
    """Whether Spark's readers pass over it: a folder `_day=1` is a partition, `_day` is hidden."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class Folder:
    """Reads and writes small text files under one path or URI, and lists, moves and removes files."""

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

    def files(self, below: str = "") -> Iterator[str]:
        """The names of all files in a folder and the folders in it, with their folders; none hidden."""
        path = self._at(below)
        for status in self._fs.listStatus(path) if self._fs.exists(path) else ():
            found = status.getPath().getName()
            if _is_hidden(found):
                continue
            name = f"{below}/{found}" if below else found
            if status.isDirectory():
                yield from self.files(name)
            else:
                yield name

    def sizes(self, pattern: str, below: str = "") -> dict[str, int]:
        """Return name and bytes of the files in a folder that fit a pattern such as `*/day-*`.

        Java does the matching: a folder of many files costs little where few of them fit.
        """
        base = f"{self._fs.makeQualified(self._at(below)).toString()}/"
        place = unglobbed(f"{self.uri}/{below}" if below else self.uri)
        sizes = {}
        for status in self._fs.globStatus(self._path(f"{place}/{pattern}")) or ():
            name = status.getPath().toString().removeprefix(base)
            if not status.isDirectory() and not any(map(_is_hidden, name.split("/"))):
                sizes[name] = int(status.getLen())
        return sizes

    def exists(self, name: str) -> bool:
        """Whether there is a file or a folder of this name."""
        return bool(self._fs.exists(self._at(name)))

    def move(self, name: str, to: str) -> None:
        """Give a file another name; its new folder is made where it is missing."""
        target = self._at(to)
        self._fs.mkdirs(target.getParent())
        if not self._fs.rename(self._at(name), target):
            raise TerminalError(
                f"cannot rename {self.uri}/{name} to {to}: is the table on a full disk?"
            )

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; one that is not there is no error."""
        self._fs.delete(self._at(name), True)

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(self._spark, f"{self.uri}/{name}")

    def _at(self, name: str) -> Any:
        return self._path(f"{self.uri}/{name}" if name else self.uri)
