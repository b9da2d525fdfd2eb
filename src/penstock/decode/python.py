"""A parser in Python: a function of value, key and topic that returns rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, cast

from pydantic import Field, model_validator
from pyspark.sql.types import StructType

from penstock.decode.kernels.outcome import Kernel
from penstock.decode.kernels.parser import (
    ParserKernel,
    TableForm,
    TableParserKernel,
    accepted_arguments,
)
from penstock.decode.workers import ArrowDecode
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


class PythonDecode(ArrowDecode):
    """A function of one (value), two (value, key) or three (value, key, topic) arguments, text or bytes.

    It returns a row as a dict or a tuple, several as a list of them or a table (pandas, Arrow), or None
    to leave the record out. With `tables` it is a function of one table with the columns payload, key and
    topic, called for many records at once; records on which it fails are found by halving the table, so
    the rows of one record must not depend on the others.
    """

    name = "python"

    function: Function = Field(description="The parser, as `module:function`.")
    schema_: Schema = Field(alias="schema", description="The columns of the rows it returns.")
    tables: TableForm | None = Field(
        default=None,
        description="Pass tables of records to the function instead of one record at a time: "
        "`pandas` or `arrow`.",
    )
    input: Literal["text", "bytes"] = Field(
        default="text",
        description="What value and key are passed as. A value that is not UTF-8 is an error of that "
        "record if it is `text`.",
    )

    @model_validator(mode="after")
    def _arguments_fit(self) -> PythonDecode:
        taken = accepted_arguments(self.function.load(), self.function.path)
        if self.tables and taken != 1:
            raise ValueError(
                f"with 'tables' the parser takes one table; it takes {taken} arguments"
            )
        if self.tables and self.metadata:
            raise ValueError(
                "with 'tables' it is not known which record a row came from: leave 'metadata' out"
            )
        return self

    def columns(self) -> list[str]:
        """Return as many record columns as the function takes arguments; a table has them all."""
        every = ["value", "key", "topic"]
        if self.tables:
            return every
        return every[: accepted_arguments(self.function.load(), self.function.path)]

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        if self.tables:
            return partial(TableParserKernel, self.function, self.schema_, self.tables, self.input)
        return partial(ParserKernel, self.function, self.schema_, self.columns(), self.input)

    def row_schema(self) -> StructType:
        """Return the declared schema."""
        return cast(StructType, StructType.fromDDL(self.schema_.ddl()))
