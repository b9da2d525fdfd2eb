"""The grouped options of the import `http`: who asks (`auth`), how pages follow each other (`paging`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, model_validator
from typing_extensions import Self

from penstock.config.models import SafeModel
from penstock.errors import nearest
from penstock.imports.http.json_text import Pointer


def _pointer(text: str) -> str:
    return Pointer.read(text).text


def checked_url(given: str) -> str:
    """Return an address that can be asked, or raise what is wrong with it; a password is not shown."""
    try:
        split = urlsplit(given.strip())
        host, _ = split.hostname, split.port
    except ValueError as error:
        raise ValueError(f"the address cannot be read: {error}; give http(s)://HOST/PATH") from None
    if split.scheme not in ("http", "https") or not host:
        raise ValueError(
            f"{split.scheme + '://...' if split.scheme else 'an address without http'!r} cannot be "
            "polled; allowed: http://HOST/PATH and https://HOST/PATH"
        )
    if split.username is not None or split.password is not None:
        raise ValueError(
            "the address contains a user; give the user and the password in 'auth.basic' instead"
        )
    if split.fragment:
        raise ValueError(f"'#{split.fragment}' is never sent to a server; leave it out")
    return given.strip()


JsonPointer = Annotated[str, AfterValidator(_pointer)]
Url = Annotated[str, AfterValidator(checked_url)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
AtEnd = Literal["wait", "restart"]


class OptionGroup(SafeModel):
    """The base of grouped options."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class OneOf(OptionGroup):
    """A mapping with exactly one of its options."""

    @model_validator(mode="before")
    @classmethod
    def _names_one(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        known = [*cls.model_fields]
        for name in given:
            if name not in known:
                raise ValueError(f"{name!r} is unknown; {nearest(str(name), known)}")
        if len(given) != 1:
            what = f"given {' and '.join(given)}" if given else "nothing is given"
            raise ValueError(f"{what}; give exactly one of: {', '.join(known)}")
        return given

    @property
    def chosen(self) -> Any:
        """Return the one that is given."""
        return next(value for _, value in self if value is not None)


class BasicAuth(OptionGroup):
    """A user and a password."""

    username: str = Field(min_length=1, pattern="^[^:]*$")
    password: SecretStr


class BearerAuth(OptionGroup):
    """A token that is sent with each request."""

    token: SecretStr = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _token_alone(cls, given: Any) -> Any:
        return {"token": given} if isinstance(given, (str, SecretStr)) else given


class OauthClient(OptionGroup):
    """OAuth 2.0 client credentials: a token is fetched, and used until shortly before it expires."""

    token_url: Url = Field(description="Where tokens are fetched.")
    client_id: str = Field(min_length=1)
    client_secret: SecretStr = Field(min_length=1)
    scope: str = ""


class ApiKey(OptionGroup):
    """A key in a header or in a parameter of the address."""

    header: HeaderName | None = Field(default=None, description="The header that has the key.")
    parameter: str | None = Field(
        default=None, min_length=1, description="The parameter that has the key."
    )
    secret: SecretStr = Field(min_length=1, description="The key.")

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if (self.header is None) == (self.parameter is None):
            given = "both" if self.header else "neither"
            raise ValueError(
                f"given {given} of 'header' and 'parameter': give the one that has the key"
            )
        return self


class Auth(OneOf):
    """Who asks: exactly one of these."""

    basic: BasicAuth | None = None
    bearer: BearerAuth | None = None
    oauth: OauthClient | None = None
    api_key: ApiKey | None = None


class NextLink(OptionGroup):
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


class _Parameter(OptionGroup):
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
