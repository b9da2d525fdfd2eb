"""The description of a table of files: stored in a small file next to them, or else read from them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import AtomicType, BinaryType, StructField, StructType

from penstock.errors import ConfigError, nearest
from penstock.pipeline.storage import Folder, unglobbed
from penstock.sinks.evolution import evolution

# Readers pass over names with an underscore: what lies there is not part of the table.
HIDDEN = "_penstock"


@dataclass(frozen=True)
class FileTable:
    """A table's form: files of one format, in folders by some of its columns."""

    format: str
    partition_by: tuple[str, ...]
    columns: StructType

    @property
    def in_files(self) -> StructType:
        """Return the columns in the files; the others are in the names of their folders."""
        return StructType([each for each in self.columns if each.name not in self.partition_by])

    @property
    def folders(self) -> str:
        """Return a pattern of the folders of the files."""
        return "*/" * len(self.partition_by)

    def fitting(self, rows: StructType, named: str) -> FileTable:
        """Return the table as it must be for these rows, or refuse them."""
        change = evolution(self.columns, rows, named)
        return replace(self, columns=change.applied(self.columns)) if change else self


def checked(partition_by: list[str], rows: StructType) -> None:
    """Refuse columns for folders that the rows lack, or that cannot name a folder."""
    for name in partition_by:
        if name not in rows.names:
            raise ConfigError(
                f"'partition_by' names the column {name!r}; {nearest(name, rows.names)}"
            )
        if name.startswith("."):
            raise ConfigError(
                f"'partition_by' names the column {name!r}: readers pass over folders whose names begin "
                "with a dot; give it another name in a step"
            )
        kind = rows[name].dataType
        if not isinstance(kind, AtomicType) or isinstance(kind, BinaryType):
            raise ConfigError(
                f"'partition_by' names the column {name!r}, which is {kind.simpleString()}: a folder is "
                "named after a text, a number, a date or a time; make such a column in a step"
            )
    if len(partition_by) == len(rows.names):
        raise ConfigError(
            f"'partition_by' names every column ({', '.join(partition_by)}): at least one must be left "
            "for the files"
        )


def known(folder: Folder) -> FileTable | None:
    """Return the table's form as it was kept, or None."""
    while numbers := _versions(folder):
        if (text := folder.read(_version(numbers[-1]))) is None:
            continue  # another process has just written a newer one
        kept = json.loads(text)
        columns = StructType.fromJson(kept["columns"])
        return FileTable(kept["format"], tuple(kept["partition_by"]), columns)
    return None


def keep(folder: Folder, table: FileTable) -> bool:
    """Write the table's form down under a new number: the last one is there until this one is whole.

    Return False where another process did so first.
    """
    older = _versions(folder)
    text = {
        "format": table.format,
        "partition_by": table.partition_by,
        "columns": table.columns.jsonValue(),
    }
    if not folder.create(_version(older[-1] + 1 if older else 1), json.dumps(text, indent=1)):
        return False
    for number in older:
        folder.remove(_version(number))
    return True


def inferred(spark: SparkSession, folder: Folder, wanted: FileTable) -> FileTable | None:
    """Return the description of a table that has files and no stored description, or None."""
    suffix = f".{wanted.format}"
    first = next((name for name in folder.files() if suffix in name.rpartition("/")[2]), None)
    if first is None:
        return None
    folders = tuple(part.partition("=")[0] for part in first.split("/")[:-1])
    if folders != wanted.partition_by:
        raise other_folders(folder.uri, folders, wanted.partition_by)
    reader = spark.read.format(wanted.format).option("pathGlobFilter", f"*{suffix}*")
    reader = reader.option("mergeSchema", "true").option("header", "true")
    try:
        columns = reader.load(unglobbed(folder.uri)).schema
    except PySparkException as error:
        raise ConfigError(
            f"the files in {folder.uri} cannot be read as one table: {str(error).splitlines()[0]}; "
            "write to another folder"
        ) from None
    return replace(wanted, columns=StructType([_typed(each, wanted) for each in columns]))


def other_folders(place: str, existing: tuple[str, ...], given: tuple[str, ...]) -> ConfigError:
    """Return the error for a table whose folders are not those of the options."""
    return ConfigError(
        f"the table in {place} has {_described(existing)}, and 'partition_by' asks for "
        f"{_described(given)}: give it as {list(existing)}, or write to another folder"
    )


def _described(partition_by: tuple[str, ...]) -> str:
    return f"folders by {', '.join(partition_by)}" if partition_by else "no folders"


def _typed(field: StructField, wanted: FileTable) -> StructField:
    """Return a column with the files' type; for text and folder names, with the rows' type."""
    silent = wanted.format != "parquet" or field.name in wanted.partition_by
    asked = {each.name.lower(): each.dataType for each in wanted.columns} if silent else {}
    return StructField(field.name, asked.get(field.name.lower(), field.dataType))


def _version(number: int) -> str:
    return f"{HIDDEN}/table-{number}.json"


def _versions(folder: Folder) -> list[int]:
    names = (name.removeprefix("table-").removesuffix(".json") for name in folder.names(HIDDEN))
    return sorted(int(name) for name in names if name.isdigit())
