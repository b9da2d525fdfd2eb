"""What the step `http`, the operation `publish: http` and `lookup` share: a request of templates.

Values in an address are encoded, one value never becomes two parts of it, and the host is fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field, field_validator

from penstock.flows.definition.model import FlowModel, refused
from penstock.flows.expressions import Expression, ExpressionError, Template
from penstock.flows.expressions.value_text import bytes_of, text_of
from penstock.flows.message import Message
from penstock.flows.running.systems import HttpRequest
from penstock.http.http_options import Auth, HeaderName, checked_url
from penstock.pipeline.values import Duration

_WITH_HOST = re.compile(r"https?://[^/?#]+[/?]")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def in_address(value: Any) -> str:
    """Return a value as a part of an address: encoded, and never a step to another folder.

    >>> in_address("a/b?c"), in_address(7)
    ('a%2Fb%3Fc', '7')
    """
    text = text_of(value)
    if text in (".", "..") or text == "":
        shown = repr(text) if text else "an empty text"
        raise ExpressionError(f"{shown} cannot be a part of an address: it would lead elsewhere")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ExpressionError(
            "a text with half of a surrogate pair cannot be in an address"
        ) from None


def in_header(value: Any) -> str:
    """Return a value as a part of a header; line breaks are refused.

    >>> in_header("a\\r\\nX: y")
    Traceback (most recent call last):
    penstock.flows.expressions.expression_error.ExpressionError: a header cannot have control characters
    """
    text = text_of(value)
    if _CONTROL.search(text):
        raise ExpressionError("a header cannot have control characters")
    return text if text.isascii() else quote(text, safe=" ,;:=/")


class HttpOptions(FlowModel):
    """An address and how it is asked."""

    url: Template = Field(
        description="The address; `${...}` in its path and query are encoded. The host is fixed."
    )
    headers: dict[HeaderName, Template] = Field(default_factory=dict, description="Headers.")
    auth: Auth | None = Field(
        default=None,
        description="Who asks, one of: `basic: {username, password}`, `bearer: TOKEN`, `oauth: "
        "{token_url, client_id, client_secret, scope}`, `api_key: {header, secret}` or `{parameter, "
        "secret}`.",
    )
    timeout: Duration = Field(
        default=30.0, gt=0, le=3600, description="The longest time for a reply."
    )
    max_bytes: int = Field(default=16 * 2**20, ge=1, description="The largest reply.")
    ca: str | None = Field(
        default=None, description="PEM file of the authorities to trust; default: the machine's."
    )

    @field_validator("url")
    @classmethod
    def _has_a_fixed_host(cls, url: Template) -> Template:
        try:
            checked_url(url.sample())
        except ValueError as error:
            raise refused(f"given {url.given!r:.80}; {error}") from None
        if not url.is_plain and not _WITH_HOST.match(url.prefix):
            raise refused(
                f"given {url.given!r:.80}; a message may not choose the host: ${{...}} is allowed after "
                "https://HOST/"
            )
        return url

    @field_validator("headers")
    @classmethod
    def _are_ours_to_give(cls, headers: dict[str, Template]) -> dict[str, Template]:
        for name, value in headers.items():
            if name.lower() in _OWN_HEADERS:
                raise refused(f"the header {name!r} is written by the client; leave it out")
            if _CONTROL.search(value.sample()) or not value.sample().isascii():
                raise refused(
                    f"the header {name!r} has a control character or a letter that is not ASCII"
                )
        return headers

    def request(self, method: str, body: Expression | None) -> Callable[[Message], HttpRequest]:
        """Return what makes the request of a message."""
        url = self.url.evaluator(in_address)
        headers = [(name, value.evaluator(in_header)) for name, value in self.headers.items()]
        content = body.evaluator() if body else None

        def make(message: Message) -> HttpRequest:
            filled = {name: str(value(message)) for name, value in headers}
            data = None if content is None else content(message)
            if isinstance(data, list | dict):
                filled.setdefault("Content-Type", "application/json")
            return HttpRequest(method, str(url(message)), filled, bytes_of(data))

        return make


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]


def is_success(status: int, patterns: tuple[str, ...]) -> bool:
    """Return whether a status is one of these.

    >>> is_success(204, ("2xx",)), is_success(404, ("2xx", "404")), is_success(500, ("2xx",))
    (True, True, False)
    """
    return any(str(status) == each or each == f"{status // 100}xx" for each in patterns)


def checked_statuses(given: Any) -> tuple[str, ...]:
    """Return statuses as texts, or raise where one is none."""
    texts = tuple(
        str(each).lower() for each in (given if isinstance(given, list | tuple) else [given])
    )
    for text in texts:
        if not re.fullmatch(r"[1-5](?:[0-9]{2}|xx)", text):
            raise refused(f"given {text!r}; a status is a number as 404, or 2xx for 200 to 299")
    return texts
