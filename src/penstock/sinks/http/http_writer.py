"""Makes the columns of requests with Spark, for tasks to send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.http.http_client import tls_context
from penstock.pipeline import Opening
from penstock.sinks.http.http_outlet import HttpTarget, statuses
from penstock.sinks.http.request_rows import RequestForm
from penstock.sinks.messages import MessageValue, MessageWriter
from penstock.sinks.messages.column_template import ColumnTemplate
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.messages.record_columns import require_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.http.http_sink import HttpSink


class HttpWriter(MessageWriter["HttpSink"]):
    """Sends the rows of one pipeline."""

    value: MessageValue

    def __init__(self, sink: HttpSink, opening: Opening) -> None:
        super().__init__(sink, opening)
        self._url = ColumnTemplate.read(sink.url)
        self._headers = {name: ColumnTemplate.read(text) for name, text in sink.headers.items()}
        self.value = MessageValue(sink.value_format, sink.value, opening.pipeline)

    def prepare(self, schema: StructType) -> None:
        """Look at the columns and the file of authorities, and register schemas."""
        require_columns("http", (self.sink.value,), schema)
        self._url.check("url", schema)
        for name, template in self._headers.items():
            template.check(f"headers.{name}", schema)
        tls_context(self.sink.ca)
        self.prepare_messages(schema)

    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the body, and address and headers where they have columns."""
        made: dict[str, Column] = {}
        sink = self.sink
        if sink.has_body:
            made["value"] = self._value(rows)
        if self._url.columns or not made:
            made["url"] = self._address()
        for number, template in enumerate(self._headers.values()):
            if template.columns:
                made[f"header_{number}"] = template.expression()
        return made

    def opener(self) -> Opener:
        """Return what opens the outlet of a task."""
        sink = self.sink
        numbered = [*enumerate(self._headers.items())]
        form = RequestForm(
            url=None if self._url.columns else self._url.prefix,
            headers=tuple((n, t.prefix) for _, (n, t) in numbered if not t.columns)
            + sink.own_headers(),
            header_columns=tuple((n, f"header_{at}") for at, (n, t) in numbered if t.columns),
            batch=sink.batch,
            joined=sink.batch_format if sink.batch > 1 else None,
            has_body=sink.has_body,
            checks_values=sink.value is not None,
            idempotency_key=sink.idempotency_key,
        )
        return HttpTarget(
            sink.method, sink.auth, sink.ca, sink.timeout, statuses(sink.success),
            statuses(sink.retry_statuses), sink.retry_time, sink.parallel, form,
        ).open  # fmt: skip

    def _value(self, rows: DataFrame) -> Column:
        is_json = self.sink.value_format.name == "json"
        if is_json and not self.sink.value and not rows.columns:
            raise ConfigError("the rows have no column, so there is nothing to send")
        return self.value.column(rows)

    def _address(self) -> Column:
        """Return the address; null where a column is null, or leaves a part of the path empty."""
        parts = []
        in_path = True
        for part in self._url.parts:
            one = ColumnTemplate((part,))
            if not part.column:
                in_path = in_path and "?" not in part.text
                parts.append(f.lit(part.text))
            elif in_path:
                parts.append(one.expression(lambda text: _encoded(f.nullif(text, f.lit("")))))
            else:
                parts.append(one.expression(_encoded))
        return f.concat(*parts)


def _encoded(text: Column) -> Column:
    """Return a text with every letter encoded that has a meaning in an address."""
    return f.replace(f.url_encode(text), f.lit("+"), f.lit("%20"))
