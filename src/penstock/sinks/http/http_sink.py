"""The sink `http`: its options, and what it promises."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator
from typing_extensions import Self

from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.http.http_options import ApiKey, Auth, HeaderName, checked_url
from penstock.pipeline import EVERY_DELIVERY, Opening, Sink, Writer
from penstock.pipeline.values import Duration
from penstock.sinks.http.http_writer import HttpWriter
from penstock.sinks.http.request_rows import IDEMPOTENCY_KEY
from penstock.sinks.messages.column_template import ColumnTemplate

# The host comes before the first column: no row decides where requests go.
_WITH_HOST = re.compile(r"https?://[^/?#]+[/?]")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)
_RETRIED = (408, 425, 429, "5xx")


def _status(given: int | str) -> int | str:
    if not re.fullmatch(r"[1-5][0-9x]{2}", str(given).lower()) or re.search(r"x\d", str(given)):
        raise ValueError(f"{given!r} is not a status; give a number as 404, or 5xx for 500 to 599")
    return given


Status = Annotated[int | str, AfterValidator(_status)]


class HttpSink(Sink):
    """Rows as requests to an HTTP service: one for each row, or one for several.

    At-least-once: a batch is done when each of its requests got a status of `success`. After a crash the
    batch is repeated, and rows of it may be sent again, each with the same header `Idempotency-Key` (the
    place of its record, `topic-partition-offset`), by which a service can recognize them.

    A row that the service refuses (another status, as 400) goes to the dead letters with the status and
    the reply. While the service is busy or away, requests are sent again; after `retry_time` the pipeline
    waits, and repeats the batch.
    """

    python_tasks = EVERY_DELIVERY
    names_refused = True
    why_not = (
        "a request and the progress of the pipeline cannot be one transaction; with at-least-once a "
        "service recognizes repeated requests by the header Idempotency-Key"
    )
    name = "http"
    main_option = "url"

    url: str = Field(
        description="The address, with http or https; columns in its path and query as `{id}`, encoded."
    )
    method: Literal["POST", "PUT", "PATCH", "DELETE"] = Field(
        default="POST", description="How it is sent; DELETE has no body."
    )
    headers: dict[HeaderName, str] = Field(
        default={}, description="Headers; columns in them as `{id}`. A null leaves the header out."
    )
    value: str | None = Field(
        default=None,
        description="The column that is the body, as it is; default: all columns as a JSON object.",
    )
    value_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="`json`, `csv`, `arrow`, `string`, `bytes` and the others of the sink `kafka`.",
    )
    batch: int = Field(
        default=1, ge=1, le=100_000, description="How many rows a request has at most."
    )
    batch_format: Literal["array", "lines"] = Field(
        default="array",
        description="How several rows are one body: a JSON array, or JSON lines.",
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=64,
        description="How many requests of a task are under way at a time; with more than 1, rows may "
        "arrive in another order.",
    )
    idempotency_key: bool = Field(
        default=True,
        description="Whether requests have the header `Idempotency-Key`: the place of the record.",
    )
    auth: Auth | None = Field(default=None, description="Who sends.")
    success: tuple[Status, ...] = Field(
        default=("2xx",), min_length=1, description="The statuses that confirm a request."
    )
    retry_statuses: tuple[Status, ...] = Field(
        default=_RETRIED,
        description="The statuses after which a request is sent again; `Retry-After` is honoured.",
    )
    retry_time: Duration = Field(
        default=10.0,
        ge=0,
        description="For how long a request is sent again before the batch is repeated later.",
    )
    timeout: Duration = Field(
        default=30.0, gt=0, description="The longest time for a request and its reply."
    )
    ca: str | None = Field(
        default=None,
        description="PEM file of the authorities to trust, on each machine that runs tasks; default: "
        "those of the machine.",
    )

    @field_validator("url")
    @classmethod
    def _has_a_fixed_host(cls, url: str) -> str:
        template = ColumnTemplate.read(url)
        checked_url("".join("x" if part.column else part.text for part in template.parts))
        if template.columns and not _WITH_HOST.match(template.prefix):
            raise ValueError(
                f"{url!r} has a column before its path: rows may not choose the host; columns are "
                "allowed in the path and in the query"
            )
        return url

    @field_validator("headers")
    @classmethod
    def _are_ours_to_give(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"the header {name!r} is written by the sink itself; leave it out")
            text = "".join(part.text for part in ColumnTemplate.read(value).parts)
            if any(ord(letter) < 32 and letter != "\t" for letter in text) or not text.isascii():
                raise ValueError(
                    f"the header {name!r} has a control character or a letter that is not ASCII"
                )
        return headers

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = {name.lower() for name in self.headers}
        if self.idempotency_key and IDEMPOTENCY_KEY.lower() in names:
            raise ValueError(
                f"'headers' has {IDEMPOTENCY_KEY}, which the sink writes; give 'idempotency_key: false'"
            )
        if self.auth and not isinstance(self.auth.chosen, ApiKey) and "authorization" in names:
            raise ValueError("credentials are in 'auth' and in the header 'Authorization'")
        if self.batch > 1:
            self._check_batch()
        if not self.has_body and (self.value or self.value_format.name != "json"):
            raise ValueError("DELETE has no body: leave out 'value' and 'value_format'")
        return self

    def _check_batch(self) -> None:
        texts = {"url": self.url, **self.headers}
        for name, text in texts.items():
            if ColumnTemplate.read(text).columns:
                raise ValueError(
                    f"a request of several rows has one address and one set of headers, and {name!r} has "
                    "a column: leave the column out, or give 'batch: 1'"
                )
        if not self.has_body or self.value_format.name != "json":
            raise ValueError(
                "several rows in a request are JSON: give 'batch: 1' for anything else"
            )

    @property
    def has_body(self) -> bool:
        """Return whether requests have a body."""
        return self.method != "DELETE"

    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the header that says what a body is, where the definition does not say it."""
        if not self.has_body or "content-type" in {name.lower() for name in self.headers}:
            return ()
        if self.batch > 1 and self.batch_format == "lines":
            return (("Content-Type", "application/x-ndjson"),)
        is_json = self.value_format.name in ("json", "json_schema")
        return (("Content-Type", "application/json" if is_json else "application/octet-stream"),)

    def open(self, opening: Opening) -> Writer:
        """Return what sends the rows."""
        return HttpWriter(self, opening)
