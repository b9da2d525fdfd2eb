"""Prepares a search index on the driver; Spark makes the documents of rows, and tasks send them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import ConfigError
from penstock.pipeline import ORIGIN, Batch, Opening, RefusedRow
from penstock.pipeline.json_options import EXACT_JSON
from penstock.sinks.messages import MessageWriter
from penstock.sinks.messages.column_template import ColumnTemplate
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.messages.record_columns import (
    as_bytes,
    column,
    require_columns,
    require_type,
)
from penstock.sinks.opensearch.bulk_outlet import BulkOptions
from penstock.sinks.opensearch.bulk_rows import BulkForm
from penstock.sinks.opensearch.index_setup import make_data_stream, make_index, put_template
from penstock.sinks.opensearch.search_nodes import NodeOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.opensearch.opensearch_sink import OpensearchSink

TIMESTAMP = "@timestamp"
_TIMES = (TimestampType, TimestampNTZType, DateType)


class OpensearchWriter(MessageWriter["OpensearchSink"]):
    """Writes the documents of one pipeline."""

    def __init__(self, sink: OpensearchSink, opening: Opening) -> None:
        super().__init__(sink, opening)
        self._index = ColumnTemplate.read(sink.index)
        self._nodes = NodeOptions(sink.url, sink.auth, sink.ca, sink.timeout, sink.gzip)

    def prepare(self, schema: StructType) -> None:
        """Look at the columns, then make templates, the index or the data stream ready."""
        self._check(schema)
        with self._nodes.connect() as nodes:
            nodes.require_server()
            if template := self._template():
                put_template(nodes, _template_name(self.opening.pipeline), template)
            if self._index.columns:
                return
            if self.sink.data_stream:
                make_data_stream(nodes, self._index.prefix)
            elif self.sink.mapping or self.sink.settings:
                make_index(nodes, self._index.prefix, self.sink.mapping, self.sink.settings)

    def write(self, batch: Batch) -> Sequence[RefusedRow]:
        """Write the documents; return the rows that were refused."""
        if not self.sink.id and ORIGIN[0] not in batch.rows.columns:
            raise ConfigError(
                "the ids of documents are the places of their records, and a step or the decode of this "
                "pipeline hides of which record a row was made: give the columns of the id in 'id'"
            )
        return super().write(batch)

    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the document and, where they are not the same for all rows, id, index and the others."""
        sink = self.sink
        made: dict[str, Column] = {}
        if sink.operation != "delete":
            made["document"] = self._document(rows)
        if sink.id:
            made["id"] = _joined(sink.id)
        if self._index.columns:
            made["index"] = self._index.expression(f.lower)
        if sink.version:
            made["version"] = column(sink.version).cast("bigint")
        if sink.delete_when or sink.delete_null:
            made["deleted"] = self._deleted()
        return made

    def opener(self) -> Opener:
        """Return what opens the outlet of a task."""
        fixed = not self._index.columns
        sink = self.sink
        form = BulkForm(sink.operation, self._index.prefix, fixed, bool(sink.value))
        return BulkOptions(
            self._nodes, form, sink.data_stream and not fixed, sink.batch_bytes, sink.retry_time
        ).open

    def _document(self, rows: DataFrame) -> Column:
        if self.sink.value:
            return as_bytes(rows, self.sink.value)
        own = {self.sink.delete_when, self.sink.timestamp}
        columns = [column(name) for name in rows.columns if name not in own]
        if self.sink.timestamp:
            columns.insert(0, column(self.sink.timestamp).alias(TIMESTAMP))
        return f.to_json(f.struct(*columns), EXACT_JSON).cast("binary")

    def _deleted(self) -> Column:
        by_column = column(self.sink.delete_when) if self.sink.delete_when else f.lit(False)
        if not self.sink.delete_null:
            return by_column
        return f.coalesce(by_column, f.lit(False)) | column(str(self.sink.value)).isNull()

    def _template(self) -> dict[str, Any]:
        sink = self.sink
        patterns = {"index_patterns": [self._index.wildcard]}
        if sink.index_template:
            return {**patterns, **sink.index_template}
        if not self._index.columns or not (sink.mapping or sink.settings):
            return {}
        body = {"mappings": sink.mapping, "settings": sink.settings}
        return {**patterns, "template": {part: what for part, what in body.items() if what}}

    def _check(self, rows: StructType) -> None:
        sink = self.sink
        named = (*sink.id, sink.value, sink.delete_when, sink.version, sink.timestamp)
        require_columns("opensearch", named, rows)
        require_type("opensearch", "delete_when", sink.delete_when, rows, BooleanType)
        require_type("opensearch", "version", sink.version, rows, IntegralType)
        self._index.check("index", rows)
        if sink.value and not isinstance(
            rows[sink.value].dataType, (StringType, BinaryType, StructType)
        ):
            raise ConfigError(
                f"'value' names the column {sink.value!r}, which is "
                f"{rows[sink.value].dataType.simpleString()}: it must be a JSON object, as a string or "
                "as bytes"
            )
        if sink.timestamp and not isinstance(rows[sink.timestamp].dataType, _TIMES):
            raise ConfigError(
                f"'timestamp' names the column {sink.timestamp!r}, which is "
                f"{rows[sink.timestamp].dataType.simpleString()}: it must be a timestamp or a date"
            )
        if sink.timestamp and TIMESTAMP in rows.names:
            raise ConfigError(f"there is a column {TIMESTAMP!r} already: leave out 'timestamp'")
        if sink.data_stream and not (sink.value or sink.timestamp or TIMESTAMP in rows.names):
            raise ConfigError(
                f"documents of a data stream need {TIMESTAMP!r}: name its column with 'timestamp'"
            )


def _template_name(pipeline: str) -> str:
    """Return a name that the server allows.

    >>> _template_name("Orders 1")
    'penstock-orders-1'
    """
    return "penstock-" + re.sub(r"[^a-z0-9_.-]", "-", pipeline.lower())


def _joined(names: Sequence[str]) -> Column:
    """Return the id of a document: null where a column is null; two rows never share one by chance."""
    texts = [column(name).cast("string") for name in names]
    if len(texts) == 1:
        return texts[0]
    escaped = [
        f.replace(f.replace(t, f.lit("%"), f.lit("%25")), f.lit("|"), f.lit("%7C")) for t in texts
    ]
    pairs = [part for text in escaped for part in (f.lit("|"), text)]
    return f.concat(*pairs[1:])
