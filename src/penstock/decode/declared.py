"""What the decodes with declared columns of one value share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import cast

from pydantic import Field, model_validator
from pyspark.sql.types import StructType

from penstock.decode.kernels.outcome import Kernel
from penstock.decode.workers import ArrowDecode
from penstock.errors import ConfigError
from penstock.pipeline.schema import Schema


class DeclaredDecode(ArrowDecode):
    """Base of the decodes that turn a value into the columns of a declared schema."""

    schema_: Schema = Field(
        alias="schema",
        description="The columns, as `symbol string not null, price double` or as a mapping.",
    )

    @abstractmethod
    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel, for the worker that runs it."""

    @model_validator(mode="after")
    def _can_be_decoded(self) -> DeclaredDecode:
        try:
            self.kernel()()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def row_schema(self) -> StructType:
        """Return the declared schema."""
        return cast(StructType, StructType.fromDDL(self.schema_.ddl()))
