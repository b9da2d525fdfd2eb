"""A parser in Python: a function of value, key and topic that returns rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from pydantic import Field
from pyspark.sql.types import StructType

from penstock.decode.kernels.outcome import Kernel
from penstock.decode.kernels.parser import ParserKernel, accepted_arguments
from penstock.decode.workers import ArrowDecode
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function


class PythonDecode(ArrowDecode):
    """A function of one (value), two (value, key) or three (value, key, topic) arguments, as text.

    It returns a row as a dict or a tuple, several as a list of them, or None to leave the record out.
    """

    name = "python"

    function: Function = Field(description="The parser, as `module:function`.")
    schema_: Schema = Field(alias="schema", description="The columns of the rows it returns.")

    def model_post_init(self, _context: Any) -> None:
        """Refuse a function whose arguments do not fit, when the definition is read."""
        accepted_arguments(self.function.load(), self.function.path)

    def columns(self) -> list[str]:
        """Return as many record columns as the function takes arguments."""
        return ["value", "key", "topic"][
            : accepted_arguments(self.function.load(), self.function.path)
        ]

    def kernel(self) -> Callable[[], Kernel]:
        """Return what makes the kernel."""
        return partial(ParserKernel, self.function, self.schema_, self.columns())

    def row_schema(self) -> StructType:
        """Return the declared schema."""
        return cast(StructType, StructType.fromDDL(self.schema_.ddl()))
