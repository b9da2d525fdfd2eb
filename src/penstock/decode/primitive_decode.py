"""Values of Kafka's own serdes: one number, text, UUID or bytes per record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from pydantic import Field
from pyspark.sql.types import StructType

from penstock.decode.kernels.outcome import Kernel
from penstock.decode.kernels.primitive_kernel import Primitive, PrimitiveKernel, spark_type
from penstock.decode.workers import ArrowDecode
from penstock.pipeline.columns import Field as Column
from penstock.pipeline.columns import Scalar
from penstock.pipeline.schema import Schema


class PrimitiveDecode(ArrowDecode):
    """One column of a primitive type, as Kafka's serializers write it: numbers big-endian, text in UTF-8.

    A record without a value is a null; a value of another length, or text that is not UTF-8, is an error
    of that record. A UUID is a column of text.
    """

    name = "primitive"
    main_option = "type"

    type: Primitive = Field(description="The type of the values.")
    column: str = Field(default="value", min_length=1, description="The column's name.")

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(PrimitiveKernel, self.type, self.column)

    def row_schema(self) -> StructType:
        """Return the schema of the only column."""
        only = Schema((Column(self.column, Scalar(spark_type(self.type))),))
        return cast(StructType, StructType.fromDDL(only.ddl()))
