"""Rows as Parquet files in a folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from penstock.errors import SetupError
from penstock.pipeline import EVERY_DELIVERY, Batch, Opening, Sink
from penstock.pipeline.storage import Folder, absolute, is_uri

# Readers pass over names with an underscore: what lies there is not part of the table yet.
_ASIDE = "_penstock"


class ParquetSink(Sink):
    """Rows as Parquet files under a folder or a URI.

    Exactly-once: files carry the name of their batch. A batch is written aside and its files are
    then renamed into the table; one that is run again after a crash first removes its files.
    """

    delivers = EVERY_DELIVERY
    name = "parquet"
    main_option = "path"

    path: str = Field(min_length=1, description="Where the files go: a folder, or a URI.")
    partition_by: list[str] = Field(
        default_factory=list, description="Columns that become folders."
    )
    compression: str = Field(
        default="zstd",
        pattern="^(none|snappy|gzip|lz4|zstd)$",
        description="none, snappy, gzip, lz4 or zstd.",
    )

    def prepare(self, _opening: Opening) -> None:
        """Refuse a folder that cannot be written."""
        if is_uri(self.path):
            return
        try:
            Path(self.path).mkdir(parents=True, exist_ok=True)
            probe = Path(self.path) / "_penstock-probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise SetupError(
                f"the sink 'parquet' cannot write to {self.path}: {error.strerror}; "
                "choose a folder that this user may write"
            ) from None

    def write(self, batch: Batch) -> None:
        """Write the rows aside, then bring their files into the table."""
        table = Folder(batch.rows.sparkSession, absolute(self.path))
        if batch.may_repeat:
            self._take_back(table, batch)
        aside = f"{_ASIDE}/{batch.label}"
        writer = batch.rows.write.mode("overwrite").option("compression", self.compression)
        writer.partitionBy(*self.partition_by).parquet(f"{table.uri}/{aside}")
        for name in table.files(aside):
            folder, _, file = name.removeprefix(f"{aside}/").rpartition("/")
            table.move(name, f"{folder}/{batch.label}~{file}".lstrip("/"))
        table.remove(aside)

    def _take_back(self, table: Folder, batch: Batch) -> None:
        """Remove what an earlier run of this batch left in the table."""
        for name in table.files():
            if name.rpartition("/")[2].startswith(f"{batch.label}~"):
                table.remove(name)
