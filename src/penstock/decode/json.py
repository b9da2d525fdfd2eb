"""Strict JSON with a declared schema: a value that does not fit is that record's error, never a null."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pyspark.sql.types import StructType
from typing_extensions import Self

from penstock.decode.kernels.json.json_documents import DocumentKernel, Layout
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_paths import parse_path
from penstock.decode.kernels.outcome import Kernel
from penstock.decode.workers import ArrowDecode
from penstock.errors import ConfigError, nearest
from penstock.pipeline.schema import Schema


class Explode(BaseModel):
    """The array whose elements become rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    field: str = Field(min_length=1, description="The name of the field, at the top of the record.")
    keep_empty: bool = Field(
        default=False, description="A record without elements is one row, with nulls."
    )


class JsonDecode(ArrowDecode):
    """One JSON object per record, into the declared columns; fields that are not declared are ignored.

    A value that does not fit its column, a number too large, a missing required field: each is an error
    of that record.

    A path is `$` followed by steps to one value: `.name`, `['any name']`, `[0]`. A value that is missing,
    also on the way, is null; one of another type is an error of that record.

    With `explode: legs` each element of the array `legs` becomes a row. In it, the field `legs` is the
    element itself, and the fields of an element that is an object are next to those of the record, and
    replace those of the same name; paths apply to this row. If one element does not fit, the whole record
    fails.
    """

    name = "json"

    schema_: Schema = Field(
        alias="schema",
        description="The columns, as `symbol string not null, price double` or as a mapping.",
    )
    rest: str | None = Field(
        default=None,
        min_length=1,
        description="A column for the fields at the top of the record that no column is named after: "
        "the JSON text of an object, null if there are none. Fields that `paths` read stay in it.",
    )
    paths: dict[str, str] = Field(
        default_factory=dict,
        description="Declared columns that come from a path instead of the field of their name, as in "
        "`{price: $.order.lines[0].price}`.",
    )
    explode: str | Explode | None = Field(
        default=None,
        description="The field with an array whose elements become rows. A record with an empty or "
        "missing array has no row; with `{field: legs, keep_empty: true}` it is one row, with nulls.",
    )

    @field_validator("schema_")
    @classmethod
    def _can_be_decoded(cls, schema: Schema) -> Schema:
        try:
            JsonKernel(schema)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return schema

    @field_validator("paths")
    @classmethod
    def _are_paths(cls, paths: dict[str, str]) -> dict[str, str]:
        try:
            for path in paths.values():
                parse_path(path)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return paths

    @model_validator(mode="after")
    def _columns_exist(self) -> Self:
        for name in self.paths:
            if name not in self.schema_.names:
                raise ValueError(
                    f"paths: {name!r} is not a declared column; {nearest(name, self.schema_.names)}"
                )
        try:
            JsonKernel(self._layout().schema(self.schema_))
        except ConfigError as error:
            raise ValueError(f"rest: {error}") from None
        return self

    def columns(self) -> list[str]:
        """Return the value."""
        return ["value"]

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel; without options that change documents, the direct one."""
        layout = self._layout()
        if layout == Layout():
            return partial(JsonKernel, self.schema_)
        return partial(DocumentKernel, self.schema_, layout)

    def row_schema(self) -> StructType:
        """Return the declared schema, and the column of the rest."""
        rows = self._layout().schema(self.schema_)
        return cast(StructType, StructType.fromDDL(rows.ddl()))

    def _layout(self) -> Layout:
        given = self.explode
        explode = Explode(field=given) if isinstance(given, str) else given
        return Layout(
            rest=self.rest,
            paths={name: parse_path(path) for name, path in self.paths.items()},
            explode=explode.field if explode else None,
            keep_empty=explode.keep_empty if explode else False,
        )
