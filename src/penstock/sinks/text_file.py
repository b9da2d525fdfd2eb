"""Lines of one file: what tools read that follow a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from penstock.errors import ConfigError, TransientError
from penstock.pipeline import Batch, Opening, Sink, Writer

_NEWLINE = b"\n"


class TextFileSink(Sink):
    """Appends a column of each row as a line to one file. The driver writes it, in the order of the rows.

    At-least-once: a batch that is run again appends its lines again. What a kill left of a line gets its
    end first, so that the next line is one of its own. For tables use `files`.
    """

    name = "text_file"
    main_option = "path"

    path: str = Field(min_length=1, description="The file, on the machine of the driver.")
    column: str = Field(default="value", min_length=1, description="The column with the lines.")

    def open(self, opening: Opening) -> Writer:
        """Return what appends."""
        return _Appending(self, opening)


class _Appending(Writer[TextFileSink]):
    def write(self, batch: Batch) -> None:
        """Append the lines of a batch, and wait until they are on the disk."""
        sink = self.sink
        if sink.column not in batch.rows.columns:
            raise ConfigError(
                f"the rows have no column {sink.column!r}, which 'text_file' writes; they have "
                f"{', '.join(batch.rows.columns)}"
            )
        lines = batch.rows.select(batch.rows[f"`{sink.column.replace('`', '``')}`"].cast("string"))
        try:
            with Path(sink.path).open("ab+") as file:
                _end_line(file)
                for part in lines.toArrow().to_batches():
                    file.write(_with_newlines(part.column(0)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TransientError(f"{sink.path} cannot be written: {error.strerror}") from error


def _with_newlines(texts: pa.Array) -> bytes:
    """Return texts as lines, joined by Arrow: a loop over them would take ten times as long.

    >>> _with_newlines(pa.array(["a", None, "b"])), _with_newlines(pa.array([], pa.string()))
    (b'a\\nnull\\nb\\n', b'')
    """
    if not len(texts):
        return b""
    bounds = pa.array([0, len(texts)], pa.int32())
    lines = pa.ListArray.from_arrays(bounds, pc.fill_null(texts, "null"))
    joined: pa.StringScalar = pc.binary_join(lines, pa.scalar("\n", texts.type))[0]
    return bytes(joined.as_buffer()) + _NEWLINE


def _end_line(file: BinaryIO) -> None:
    """Write the end of a line that has none."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != _NEWLINE:
            file.write(_NEWLINE)
