"""Rows as Parquet files in a folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from penstock.errors import SetupError
from penstock.pipeline import Batch, Sink


class ParquetSink(Sink):
    """Rows as Parquet files under a folder or a URI.

    At-least-once: files appear whole or not at all, and the group's offsets follow them. A batch that
    is written again after a crash writes its rows again.
    """

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

    def prepare(self) -> None:
        """Refuse a folder that cannot be written."""
        if "://" in self.path:
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
        """Append the rows."""
        writer = batch.rows.write.mode("append").option("compression", self.compression)
        # Java keeps the working directory it started in; ours may be another one by now.
        place = self.path if "://" in self.path else str(Path(self.path).absolute())
        writer.partitionBy(*self.partition_by).parquet(place)
