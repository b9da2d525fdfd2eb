"""Files wherever Spark can reach through Hadoop's file systems."""
# ruff: noqa: D102 (what each method does is said in Store)

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from penstock.pipeline.stores import DRAFT, java_class, room, unglobbed
from penstock.retry import retry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REPLACED_WITHIN, _BETWEEN_LOOKS = 1.0, 0.05
_EXISTS = (
    "FileAlreadyExistsException",
    "AlreadyBeingCreatedException",
    "RemoteFileChangedException",
)


class Hadoop:
    """Files wherever Spark can reach: HDFS, an object store.

    A file is replaced by renaming a draft over it. HDFS does that in one act. Others remove the file
    first, and a process that dies in between leaves the draft alone: it is read as the file then.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._fs: Any = self._path(uri).getFileSystem(self._configuration)

    def entries(self, location: str) -> list[tuple[str, bool]]:
        path = self._path(location)
        if not self._fs.exists(path):
            return []
        names = {
            str(status.getPath().getName()): bool(status.isDirectory())
            for status in self._fs.listStatus(path)
        }
        drafts = [name for name in names if name.endswith(DRAFT)]
        for draft in drafts:
            del names[draft]
            if (name := draft.removesuffix(DRAFT)) not in names and self.exists(
                f"{location}/{name}"
            ):
                names[name] = False
        return list(names.items())

    def read(self, location: str) -> str | None:
        for look in (
            self._text,
            self._orphan,
            self._text,
        ):  # a draft may replace it between two looks
            if (text := look(location)) is not None:
                return text
        return None

    def write(self, location: str, text: str) -> None:
        draft = f"{location}{DRAFT}"
        with room(location):
            stream = self._fs.create(self._path(draft), True)
            self._fill(stream, text)
            self.replace(draft, location)

    def create(self, location: str, text: str) -> bool:
        builder = self._fs.createFile(self._path(location)).overwrite(False).recursive()
        # S3 refuses the second of two writers only where it is asked to; others do so by themselves.
        builder = builder.opt("fs.option.create.conditional.overwrite", "true")
        try:
            with room(location):
                self._fill(builder.build(), text)
        except Py4JJavaError as error:
            if java_class(error) in _EXISTS:
                return False
            raise
        return True

    def replace(self, draft: str, location: str) -> None:
        """Rename a draft over a file, in one act where the store can."""
        source, target = self._path(draft), self._path(location)
        jvm = self._gateway.jvm
        options = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
        overwrite = self._gateway.new_array(options, 1)
        overwrite[0] = options.OVERWRITE
        try:
            context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                target.toUri(), self._configuration
            )
        except Py4JJavaError as error:
            if java_class(error) != "UnsupportedFileSystemException":
                raise
            self._fs.delete(target, False)
            self._fs.rename(source, target)
        else:
            context.rename(source, target, overwrite)

    def sizes(self, location: str, pattern: str) -> dict[str, int]:
        base = f"{self._fs.makeQualified(self._path(location)).toString()}/"
        fitting = self._fs.globStatus(self._path(f"{unglobbed(location)}/{pattern}")) or ()
        return {
            status.getPath().toString().removeprefix(base): int(status.getLen())
            for status in fitting
            if not status.isDirectory()
        }

    def exists(self, location: str) -> bool:
        path = self._path(location)
        if self._fs.exists(path) or self._orphan(location) is not None:
            return True
        return bool(self._fs.exists(path))  # its draft may have replaced it between the two looks

    def move(self, location: str, to: str) -> bool:
        target = self._path(to)
        self._fs.mkdirs(target.getParent())
        try:
            return bool(self._fs.rename(self._path(location), target))
        except Py4JJavaError as error:
            if java_class(error) in (*_EXISTS, "FileNotFoundException"):
                return False
            raise

    def remove(self, location: str) -> None:
        self._fs.delete(self._path(f"{location}{DRAFT}"), False)
        self._fs.delete(self._path(location), True)

    def _orphan(self, location: str) -> str | None:
        """Return the text of a draft whose file was removed to be replaced by it; None if incomplete."""
        text = self._text(f"{location}{DRAFT}")
        return text if text is not None and _is_whole(text) else None

    def _text(self, location: str) -> str | None:
        return retry(lambda: self._content(location), _is_being_replaced, within=_REPLACED_WITHIN)

    def _content(self, location: str) -> str | None:
        try:
            stream = self._fs.open(self._path(location))
        except Py4JJavaError as error:
            if java_class(error) in ("FileNotFoundException", "PathIsNotFoundException"):
                return None
            raise
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _fill(self, stream: Any, text: str) -> None:
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()


def _is_being_replaced(error: Exception) -> float | None:
    """Return when to read again: on a disk Hadoop replaces a file, and then its checksum."""
    wrong_sum = isinstance(error, Py4JJavaError) and java_class(error) == "ChecksumException"
    return _BETWEEN_LOOKS if wrong_sum else None


def _is_whole(text: str) -> bool:
    """Return whether a file is complete: each of ours is one JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
