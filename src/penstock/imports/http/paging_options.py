"""The grouped options of the import `http`: how pages follow each other (`paging`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from penstock.http.http_options import HttpOptions, OneOf
from penstock.imports.http.json_text import Pointer


def _pointer(text: str) -> str:
    return Pointer.read(text).text


JsonPointer = Annotated[str, AfterValidator(_pointer)]
AtEnd = Literal["wait", "restart"]


class NextLink(HttpOptions):
    """Each page has the address of the next one."""

    pointer: JsonPointer | None = Field(
        default=None,
        description="Where in the document the address is; default: the header `Link` with `rel=next`.",
    )
    at_end: AtEnd = Field(
        default="wait",
        description="After the last page: `wait` asks for it again and takes what was appended; "
        "`restart` begins again with the first page, and imports everything again.",
    )

    @model_validator(mode="before")
    @classmethod
    def _pointer_alone(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {} if given == "header" else {"pointer": given}
        return given


class _Parameter(HttpOptions):
    parameter: str = Field(min_length=1, description="The parameter that is sent.")
    into: Literal["query", "body"] = Field(
        default="query",
        description="Whether it is part of the address or a member of the JSON body.",
    )


class Offset(_Parameter):
    """Pages by number: of the first record, or of the page. New records must come last."""

    parameter: str = Field(
        default="offset", min_length=1, description="The parameter with the number."
    )
    size: int = Field(default=100, ge=1, le=100_000, description="The records of a page.")
    size_parameter: str | None = Field(
        default="limit",
        min_length=1,
        description="The parameter with the size; null: it is not sent.",
    )
    end_status: Literal[400, 404, 416] | None = Field(
        default=None,
        description="The status with which the API replies after the last page; default: it gives a page "
        "without records.",
    )
    count: Literal["records", "pages"] = Field(
        default="records",
        description="What the number counts. With `pages`, `size` must be the size that the API uses.",
    )
    first: int = Field(default=0, ge=0, description="The number of the first record or page.")
    at_end: AtEnd = Field(
        default="wait",
        description="After the last page: `wait` asks for what comes after it; `restart` begins again.",
    )


class Cursor(_Parameter):
    """Each page has a cursor, which is sent to get the next page."""

    pointer: JsonPointer = Field(description="Where in the document the cursor is.")
    start: str | int | None = Field(default=None, description="The cursor of the first request.")
    more: JsonPointer | None = Field(
        default=None,
        description="Where the document says whether there are more pages now (true or false); without "
        "it, a page without records is the last one.",
    )
    at_end: AtEnd = Field(
        default="wait",
        description="After a page without a cursor: `wait` asks for this page again and takes what was "
        "appended; `restart` begins again with the first page.",
    )


class Since(_Parameter):
    """The records from a value on: the largest one of a field in the records so far."""

    field: JsonPointer = Field(
        description="Where in a record the value is: a number, a time in ISO 8601, or a text."
    )
    start: str | int | float | None = Field(
        default=None, description="The value of the first request; default: none is sent."
    )
    page_size: int | None = Field(
        default=None,
        ge=1,
        description="The most records of a reply, where the API has a limit: it must then sort them by "
        "the field, and full pages are checked for that.",
    )


class Paging(OneOf):
    """How pages follow each other: exactly one of these."""

    next_link: NextLink | None = None
    offset: Offset | None = None
    cursor: Cursor | None = None
    since: Since | None = None
