"""A folder of small files on whatever Spark can reach: this disk, HDFS, an object store."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import TerminalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOCAL = re.compile(r"local(\[.*\])?")


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own Java process, on this machine.

    >>> is_local("local[*,2]"), is_local("spark://spark:7077"), is_local("yarn")
    (True, False, False)
    """
    return _LOCAL.fullmatch(master) is not None


def is_uri(place: str) -> bool:
    """Whether a place is not on this disk but behind a URI.

    >>> is_uri("s3a://bucket/table"), is_uri("tables/trades")
    (True, False)
    """
    return "://" in place


def absolute(place: str) -> str:
    """A place that means the same in any working directory: Java keeps the one it started in."""
    return place.rstrip("/") if is_uri(place) else str(Path(place).absolute())


def for_spark(spark: SparkSession, place: str) -> str:
    """A place as Spark must hear it.

    Where it runs on this machine alone, links are followed here: what reads this disk there does not
    list a folder behind one. The machines of a cluster may each have their own link of that name.
    """
    here = not is_uri(place) and is_local(spark.sparkContext.master or "")
    return str(Path(place).resolve()) if here else absolute(place)


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
        self.uri = for_spark(spark, uri)
        self._spark = spark
        self._store: _Store = _Hadoop(spark, self.uri) if is_uri(uri) else _Disk()

    def names(self, below: str = "") -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        return [name for name, _ in self._store.entries(self._at(below))]

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        return self._store.read(self._at(name))

    def write(self, name: str, text: str) -> None:
        """Write a whole file, or nothing: under another name first, then renamed."""
        self._store.write(self._at(name), text)

    def files(self, below: str = "") -> Iterator[str]:
        """The names of all files in a folder and the folders in it, with their folders; none hidden."""
        for found, is_folder in self._store.entries(self._at(below)):
            if _is_hidden(found):
                continue
            name = f"{below}/{found}" if below else found
            if is_folder:
                yield from self.files(name)
            else:
                yield name

    def sizes(self, pattern: str, below: str = "") -> dict[str, int]:
        """Return name and bytes of the files in a folder that fit a pattern such as `*/day-*`.

        Only what fits is handed over: a folder of many files costs little where few of them fit.
        """
        found = self._store.sizes(self._at(below), pattern)
        return {
            name: size for name, size in found.items() if not any(map(_is_hidden, name.split("/")))
        }

    def exists(self, name: str) -> bool:
        """Whether there is a file or a folder of this name."""
        return self._store.exists(self._at(name))

    def move(self, name: str, to: str) -> None:
        """Give a file another name; its new folder is made where it is missing."""
        if not self._store.move(self._at(name), self._at(to)):
            raise TerminalError(
                f"cannot rename {self.uri}/{name} to {to}: is the table on a full disk?"
            )

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; one that is not there is no error."""
        self._store.remove(self._at(name))

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(self._spark, self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.uri}/{name}" if name else self.uri


# There is no such file, or there cannot be one.
_ABSENT = (FileNotFoundError, NotADirectoryError)


class _Store(Protocol):
    """What a folder of files needs; places are whole paths or URIs."""

    def entries(self, place: str) -> list[tuple[str, bool]]:
        """Return the names in a folder, and which are folders; none where there is no folder."""

    def read(self, place: str) -> str | None:
        """Return the text of a file, or None where there is none."""

    def write(self, place: str, text: str) -> None:
        """Write a whole file, or nothing."""

    def sizes(self, place: str, pattern: str) -> dict[str, int]:
        """Return name and bytes of the files under a place that fit a pattern."""

    def exists(self, place: str) -> bool:
        """Whether there is a file or a folder."""

    def move(self, place: str, to: str) -> bool:
        """Rename a file, also into a folder that is not there yet; say whether it was done."""

    def remove(self, place: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""


class _Disk:
    """Files on this disk, by Python itself: through Java, a dozen calls for each batch add up.

    Java keeps a checksum beside each file that it writes; it is removed where the file is another.
    """

    def entries(self, place: str) -> list[tuple[str, bool]]:
        try:
            with os.scandir(place) as found:
                return [(entry.name, entry.is_dir()) for entry in found]
        except _ABSENT:
            return []

    def read(self, place: str) -> str | None:
        try:
            return Path(place).read_text(encoding="utf-8")
        except _ABSENT:
            return None

    def write(self, place: str, text: str) -> None:
        file = Path(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(f"{place}.draft")
        draft.write_text(text, encoding="utf-8")
        _checksum(file).unlink(missing_ok=True)
        draft.replace(file)

    def sizes(self, place: str, pattern: str) -> dict[str, int]:
        files = (file for file in Path(place).glob(pattern) if file.is_file())
        return {file.relative_to(place).as_posix(): file.stat().st_size for file in files}

    def exists(self, place: str) -> bool:
        return Path(place).exists()

    def move(self, place: str, to: str) -> bool:
        file, target = Path(place), Path(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        for checksum in (_checksum(file), _checksum(target)):
            checksum.unlink(missing_ok=True)
        try:
            file.replace(target)
        except FileNotFoundError:
            return False
        return True

    def remove(self, place: str) -> None:
        file = Path(place)
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
            return
        for one in (_checksum(file), file):
            with suppress(*_ABSENT):
                one.unlink()


class _Hadoop:
    """Files wherever Spark can reach: HDFS, an object store."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._fs: Any = self._path(uri).getFileSystem(configuration)

    def entries(self, place: str) -> list[tuple[str, bool]]:
        path = self._path(place)
        if not self._fs.exists(path):
            return []
        found = self._fs.listStatus(path)
        return [(status.getPath().getName(), bool(status.isDirectory())) for status in found]

    def read(self, place: str) -> str | None:
        path = self._path(place)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, place: str, text: str) -> None:
        draft = self._path(f"{place}.draft")
        stream = self._fs.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._fs.delete(self._path(place), False)
        self._fs.rename(draft, self._path(place))

    def sizes(self, place: str, pattern: str) -> dict[str, int]:
        base = f"{self._fs.makeQualified(self._path(place)).toString()}/"
        fitting = self._fs.globStatus(self._path(f"{unglobbed(place)}/{pattern}")) or ()
        return {
            status.getPath().toString().removeprefix(base): int(status.getLen())
            for status in fitting
            if not status.isDirectory()
        }

    def exists(self, place: str) -> bool:
        return bool(self._fs.exists(self._path(place)))

    def move(self, place: str, to: str) -> bool:
        target = self._path(to)
        self._fs.mkdirs(target.getParent())
        return bool(self._fs.rename(self._path(place), target))

    def remove(self, place: str) -> None:
        self._fs.delete(self._path(place), True)


def _checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")
