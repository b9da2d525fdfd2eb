"""A folder of small files on whatever Spark can reach: this disk, HDFS, an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import TerminalError
from penstock.pipeline.disk import Disk
from penstock.pipeline.hadoop import Hadoop
from penstock.pipeline.stores import Store, unglobbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["Folder", "absolute", "for_spark", "is_local", "is_uri", "on_this_disk", "unglobbed"]

_LOCAL = re.compile(r"local(\[.*\])?")
# A URI of this disk: Python reaches the same files, and renames and locks them in one act.
_OF_THIS_DISK = re.compile(r"file://(localhost)?(?=/)")


def is_local(master: str) -> bool:
    """Return whether tasks run in the driver's own Java process, on this machine.

    >>> is_local("local[*,2]"), is_local("spark://spark:7077"), is_local("yarn")
    (True, False, False)
    """
    return _LOCAL.fullmatch(master) is not None


def is_uri(location: str) -> bool:
    """Return whether a location is a URI, not a path on this disk.

    >>> is_uri("s3a://bucket/table"), is_uri("tables/trades")
    (True, False)
    """
    return "://" in location


def on_this_disk(location: str) -> str:
    """Return a location without the scheme of this disk's own URIs.

    >>> on_this_disk("file:///state/p"), on_this_disk("state/p"), on_this_disk("s3a://bucket/p")
    ('/state/p', 'state/p', 's3a://bucket/p')
    """
    return _OF_THIS_DISK.sub("", location)


def absolute(location: str) -> str:
    """Return a location that is independent of the working directory: Java keeps its first one."""
    return location.rstrip("/") if is_uri(location) else str(Path(location).absolute())


def for_spark(spark: SparkSession, location: str) -> str:
    """Return a location in the form that Spark needs.

    If Spark runs on this machine only, links are resolved here, because Hadoop's local file system does
    not list a linked folder. The machines of a cluster may each have their own link of that name.
    """
    here = not is_uri(location) and is_local(spark.sparkContext.master or "")
    return str(Path(location).resolve()) if here else absolute(location)


def _is_hidden(name: str) -> bool:
    """Return whether Spark's readers ignore it: a folder `_day=1` is a partition, `_day` is hidden."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class Folder:
    """Reads and writes small text files under one path or URI, and lists, moves and removes files."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = for_spark(spark, uri)
        self._spark = spark
        self._root = on_this_disk(self.uri)
        self._store: Store = Hadoop(spark, self.uri) if is_uri(self._root) else Disk()

    def names(self, below: str = "") -> list[str]:
        """Return the names in a folder; none if there is no folder."""
        return [name for name, _ in self._store.entries(self._at(below))]

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        return self._store.read(self._at(name))

    def write(self, name: str, text: str) -> None:
        """Write a whole file, or nothing: under another name first, then renamed."""
        self._store.write(self._at(name), text)

    def create(self, name: str, text: str) -> bool:
        """Write a whole file if it does not exist; return whether this call created it."""
        return self._store.create(self._at(name), text)

    def files(self, below: str = "") -> Iterator[str]:
        """Yield the paths of all files below a folder, without hidden ones."""
        for entry, is_folder in self._store.entries(self._at(below)):
            if _is_hidden(entry):
                continue
            name = f"{below}/{entry}" if below else entry
            if is_folder:
                yield from self.files(name)
            else:
                yield name

    def sizes(self, pattern: str, below: str = "") -> dict[str, int]:
        """Return name and bytes of the files in a folder that fit a pattern such as `*/day-*`.

        Only matching files are transferred: a folder of many files costs little if few of them match.
        """
        matching = self._store.sizes(self._at(below), pattern)
        return {
            name: size
            for name, size in matching.items()
            if not any(map(_is_hidden, name.split("/")))
        }

    def exists(self, name: str) -> bool:
        """Return whether there is a file or a folder of this name."""
        return self._store.exists(self._at(name))

    def move(self, name: str, to: str) -> None:
        """Rename a file; a missing target folder is created."""
        if not self._store.move(self._at(name), self._at(to)):
            raise TerminalError(
                f"cannot rename {self.uri}/{name} to {to}: is the table on a full disk?"
            )

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; one that is not there is no error."""
        self._store.remove(self._at(name))

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(self._spark, f"{self.uri}/{name}")

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
