"""The options of HTTP clients that components share: addresses, headers, and who asks (`auth`)."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from penstock.config.models import SafeModel
from penstock.errors import nearest


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
            "used; allowed: http://HOST/PATH and https://HOST/PATH"
        )
    if split.username is not None or split.password is not None:
        raise ValueError(
            "the address contains a user; give the user and the password in 'auth.basic' instead"
        )
    if split.fragment:
        raise ValueError(f"'#{split.fragment}' is never sent to a server; leave it out")
    return given.strip()


Url = Annotated[str, AfterValidator(checked_url)]
# Of values of headers, which http.client refuses with an error that shows them.
_UNSENDABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


def require_sendable(secret: SecretStr) -> None:
    """Raise where a secret cannot be the value of a header; it is not shown."""
    if _UNSENDABLE.search(secret.get_secret_value()):
        raise ValueError(
            "the secret has a control character, as a line end, or a letter outside Latin-1, and cannot "
            "be sent in a header; check the file or variable that it comes from"
        )


class HttpOptions(SafeModel):
    """The base of grouped options."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class OneOf(HttpOptions):
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


class BasicAuth(HttpOptions):
    """A user and a password."""

    username: str = Field(min_length=1, pattern="^[^:]*$")
    password: SecretStr


class BearerAuth(HttpOptions):
    """A token that is sent with each request."""

    token: SecretStr = Field(min_length=1)

    @field_validator("token")
    @classmethod
    def _is_sendable(cls, token: SecretStr) -> SecretStr:
        require_sendable(token)
        return token

    @model_validator(mode="before")
    @classmethod
    def _token_alone(cls, given: Any) -> Any:
        return {"token": given} if isinstance(given, (str, SecretStr)) else given


class OauthClient(HttpOptions):
    """OAuth 2.0 client credentials: a token is fetched, and used until shortly before it expires."""

    token_url: Url = Field(description="Where tokens are fetched.")
    client_id: str = Field(min_length=1)
    client_secret: SecretStr = Field(min_length=1)
    scope: str = ""


class ApiKey(HttpOptions):
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
        if self.header:
            require_sendable(self.secret)
        return self


class Auth(OneOf):
    """Who asks: exactly one of these."""

    basic: BasicAuth | None = None
    bearer: BearerAuth | None = None
    oauth: OauthClient | None = None
    api_key: ApiKey | None = None
