"""CSV with a declared schema: a field that does not fit is that record's error, never a null."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pydantic import Field, model_validator

from penstock.decode.declared import DeclaredDecode
from penstock.decode.kernels.csv_kernel import CsvKernel
from penstock.decode.kernels.csv_lines import CsvDialect
from penstock.decode.kernels.outcome import Kernel


class CsvDecode(DeclaredDecode):
    """One or more lines of CSV per record, one row for each line, into the declared columns.

    A field that does not fit its column, a missing or an additional field: each is an error of that
    record. Numbers are written in digits, booleans as true and false, dates and timestamps in ISO 8601,
    bytes in base64.
    """

    name = "csv"

    delimiter: str = Field(default=",", description="The character between two fields.")
    quote: str | None = Field(
        default='"',
        description="The character around a field that contains the delimiter or a newline; in such a "
        "field it is written twice. None: no field is quoted.",
    )
    escape: str | None = Field(
        default=None, description="The character that makes the next one part of the field."
    )
    header: bool = Field(
        default=False,
        description="The first line of each record has the names of the columns, in any order.",
    )
    null: str = Field(
        default="", description="The text of a null; in quotes it is text, and not a null."
    )

    @model_validator(mode="after")
    def _characters_differ(self) -> CsvDecode:
        given = [each for each in (self.delimiter, self.quote, self.escape) if each is not None]
        if any(len(each) != 1 or not each.isascii() or each in "\r\n\0" for each in given):
            raise ValueError("delimiter, quote and escape are one ASCII character each")
        if len(set(given)) < len(given):
            raise ValueError("delimiter, quote and escape are different characters")
        return self

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        dialect = CsvDialect(self.delimiter, self.quote, self.escape, self.null)
        return partial(CsvKernel, self.schema_, dialect, header=self.header)
