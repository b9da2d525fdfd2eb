"""The step `lookup`: what a table, or an HTTP service whose replies are cached, knows about a message."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import Self

from penstock.flows.definition.http_request import HttpOptions
from penstock.flows.definition.model import refused
from penstock.flows.definition.next_files import named_file
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.definition.target import Target
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import from_json, text_of
from penstock.flows.message import Message
from penstock.flows.running.bound_step import Attempt, BoundStep, EachMessage
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.stages import Bind
from penstock.flows.running.systems import HttpRequest
from penstock.flows.steps.http_step import require_success, result_of
from penstock.pipeline.values import Duration, is_only_checked

_LARGEST = 64 * 2**20


@step_kind
class LookupStep(FlowStep):
    """Looks a value up, in a table of a file (CSV with a header, or a JSON list of objects) or over HTTP.

    A file is read again when it has changed. Replies are kept for `cache`; one with status 404 means that
    nothing was found.
    """

    name = "lookup"

    table: str | None = Field(
        default=None,
        description="The file of the table: .csv or .json, from the folder of the definition.",
    )
    column: str | None = Field(
        default=None, description="Its column with the key; default: the first."
    )
    key: Expression | None = Field(default=None, description="The key to look up in the table.")
    http: HttpOptions | None = Field(default=None, description="The service, instead of a table.")
    cache: Duration = Field(default=60.0, ge=0, description="For how long a reply is used again.")
    most: int = Field(default=10_000, ge=1, description="The most replies that are kept.")
    missing: Literal["null", "fail"] = Field(
        default="null",
        description="What happens where nothing is found: the result is null, or it fails.",
    )
    into: Target = Field(
        default=Target("variable.found"), description="Where the row or the reply goes."
    )
    # Tasks may work in another folder.
    _file: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.table is None) == (self.http is None):
            raise refused("give 'table' with 'key', or 'http', and not both")
        if self.table is not None and self.key is None:
            raise refused("'table' needs 'key': an expression for what is looked up")
        if self.http is not None and (self.key is not None or self.column is not None):
            raise refused(
                "'key' and 'column' are for a table; with 'http' the key is a part of its url"
            )
        if self.table is not None and Path(self.table).suffix not in (".csv", ".json"):
            raise refused(f"given {self.table!r:.80}; a table is a file .csv or .json")
        if self.table is not None and not is_only_checked():
            self._file = named_file(self.table)
        return self

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what looks up."""
        if self.http is not None:
            return _Service(self, path)
        table = _Table(self._file or Path(str(self.table)), self.column)
        key = self.key.evaluator() if self.key else None
        assert key is not None  # noqa: S101 - checked above
        evaluate = key

        def apply(message: Message) -> Message:
            value = evaluate(message)
            row = None if value is None else table.row(text_of(value))
            return self.found(message, row, value)

        return EachMessage(apply)

    def found(self, message: Message, value: Any, key: Any) -> Message:
        """Return the message with what was found."""
        if value is None and self.missing == "fail":
            raise Fault("CORE:LOOKUP", f"nothing is found for {key!r:.100}")
        return self.into.applied(message, value)

    def unused(self) -> dict[str, str]:
        """Return what is for replies alone."""
        return self._unless(self.http is not None, "it is for 'http'", "cache", "most")

    def summary(self) -> str:
        """Return where it looks."""
        return str(self.table or (self.http and self.http.url.given))


class _Table:
    """The rows of a file by their key; read again when the file has changed."""

    def __init__(self, path: Path, column: str | None) -> None:
        self._path = path
        self._column = column
        self._version: tuple[int, int] | None = None
        self._rows: dict[str, dict[str, Any]] = {}

    def row(self, key: str) -> dict[str, Any] | None:
        """Return a row, None where there is none."""
        try:
            status = self._path.stat()
            version = (status.st_mtime_ns, status.st_size)
            if version != self._version:
                self._rows = self._read(status.st_size)
                self._version = version
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise Fault("CORE:LOOKUP", f"the table {self._path} cannot be read: {error}") from None
        return self._rows.get(key)

    def _read(self, size: int) -> dict[str, dict[str, Any]]:
        if size > _LARGEST:
            raise Fault(
                "CORE:LOOKUP", f"the table {self._path} has {size} bytes; allowed are {_LARGEST}"
            )
        text = self._path.read_text("utf-8-sig")
        rows = (
            from_json(text)
            if self._path.suffix == ".json"
            else list(csv.DictReader(io.StringIO(text)))
        )
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Fault("CORE:LOOKUP", f"the table {self._path} is not a list of objects")
        column = self._column or next(iter(rows[0]), "") if rows else ""
        if rows and column not in rows[0]:
            known = ", ".join(map(str, rows[0]))
            raise Fault(
                "CORE:LOOKUP", f"the table {self._path} has no column {column!r}; it has {known}"
            )
        return {text_of(row[column]): row for row in rows if row.get(column) is not None}


class _Service(BoundStep):
    def __init__(self, step: LookupStep, path: str) -> None:
        assert step.http is not None  # noqa: S101 - checked by the step
        self._step = step
        self._options = step.http
        self._path = path
        self._request: Callable[[Message], HttpRequest] = step.http.request("GET", None)
        self._replies: dict[tuple[str, ...], tuple[float, Any]] = {}

    def attempt(self, messages: Sequence[Message], run: FlowRun) -> Attempt:
        def apply(message: Message) -> Message:
            request = self._request(message)
            return self._step.found(message, self._value(request, run), request.url)

        return EachMessage(apply).attempt(messages, run)

    def _value(self, request: HttpRequest, run: FlowRun) -> Any:
        key = (request.url, *(f"{name}: {value}" for name, value in request.headers.items()))
        now = run.systems.clock()
        known = self._replies.get(key)
        if known is not None and now - known[0] < self._step.cache:
            return known[1]
        reply = run.systems.requests.send(self._path, self._options, request)
        require_success(reply, ("2xx", "404"))
        value = None if reply.status == 404 else result_of(reply, "auto")
        self._replies.pop(key, None)
        self._replies[key] = (now, value)
        if len(self._replies) > self._step.most:
            self._replies.pop(next(iter(self._replies)))
        return value
